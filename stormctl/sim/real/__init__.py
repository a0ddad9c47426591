"""The real runtime as a model: deliveries, appends, step bodies, hooks and the clock, under the kernel's scheduler."""
