"""Workflows of users, from their files: what loads, and what each mistake is answered with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormctl.errors import PlanError, UsageError
from stormctl.testing import LogBuilder
from stormctl.workloads.base import Workload
from stormctl.workloads.user import absolute, load_workload, names_a_file, of_body
from stormctl.workloads.user_input import recorded_input

BODY = """
async def order(wf, input):
    "Take an order."
    return await wf.step("reserve", input)
"""


class Write:
    """Writes Python files into a folder of the test's own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, text: str, name: str = "shop.py") -> Path:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def named(self, text: str, name: str = "order") -> str:
        """The file shop.py with this text, and a name in it."""
        return f"{self(text)}:{name}"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return Write(tmp_path)


def refused(text: object) -> UsageError:
    with pytest.raises(UsageError) as caught:
        load_workload(str(text))
    said = caught.value
    assert "\n" not in f"{said}{said.remedy}"
    assert said.remedy[-1] in ".?"
    return said


class TestWhatLoads:
    def test_a_body_is_a_workload_named_by_its_file_and_name(self, write: Write) -> None:
        path = write(BODY)
        found = load_workload(f"{path}:order")
        assert (found.name, found.summary, found.bare) == ("shop.py:order", "Take an order.", True)
        assert found.source == str(path)

    def test_a_whole_workload_keeps_its_name(self, write: Write) -> None:
        path = write("from stormctl.workloads.step_storm import STEP_STORM as MINE\n")
        found = load_workload(f"{path}:MINE")
        assert (found.name, found.bare, found.source) == ("step-storm", False, str(path))

    def test_a_file_is_executed_once(self, write: Write, tmp_path: Path) -> None:
        path = write(f"with open({str(tmp_path / 'ran')!r}, 'a') as file: file.write('x')\n" + BODY)
        for _ in range(3):
            load_workload(f"{path}:order")
        assert (tmp_path / "ran").read_text() == "x"

    def test_a_file_imports_what_lies_beside_it(self, write: Write) -> None:
        write("LIMIT = 3\n", "rates.py")
        path = write("from rates import LIMIT\n" + BODY)
        before = list(sys.path)
        assert load_workload(f"{path}:order").body.__globals__["LIMIT"] == 3
        assert sys.path == before

    def test_neighbours_of_the_same_name_do_not_meet(self, write: Write) -> None:
        found = []
        for folder in ("one", "two", "one"):
            write(f"NAME = {folder!r}\n", f"{folder}/names_beside.py")
            stem = f"shop{len(found)}"
            path = write("import names_beside\n" + BODY, f"{folder}/{stem}.py")
            found.append(load_workload(f"{path}:order").body.__globals__["names_beside"].NAME)
        assert found == ["one", "two", "one"]

    def test_the_path_is_restored_after_a_file_that_breaks(self, write: Write) -> None:
        before = list(sys.path)
        refused(write.named("import sys; sys.path.append(0); 1/0"))
        assert sys.path == before

    def test_what_it_prints_stays_out_of_standard_output(
        self, write: Write, capsys: pytest.CaptureFixture[str]
    ) -> None:
        load_workload(write.named("print(1)" + BODY))
        captured = capsys.readouterr()
        assert (captured.out, captured.err) == ("", "1\n")

    def test_a_main_block_does_not_run(self, write: Write) -> None:
        load_workload(write.named(BODY + 'if __name__ == "__main__": raise SystemExit(1)'))

    def test_a_dataclass_of_the_file_may_refer_to_itself_by_name(self, write: Write) -> None:
        text = "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass Node:\n"
        text += "    next: Node | None = None\nasync def walk(wf, input: Node): return 1\n"
        assert load_workload(write.named(text, "walk")).input_type.__name__ == "Node"

    def test_a_name_for_another_process_is_absolute(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        path = write(BODY)
        monkeypatch.chdir(path.parent)
        assert absolute("shop.py:order") == f"{path}:order"

    @pytest.mark.parametrize("text", ["a.py:b", "a.py", "./a:b", "dir\\a.py:b", "order:order"])
    def test_a_path_is_told_from_a_name(self, text: str) -> None:
        assert names_a_file(text)
        assert not names_a_file("step-storm")


class TestWhatDoesNot:
    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        said = refused(f"{tmp_path}/none.py:order")
        assert str(said) == f"there is no file {tmp_path}/none.py"
        assert said.remedy == "Write path/to/file.py:name, with the path from the current folder."

    def test_a_path_of_windows(self) -> None:
        said = refused(r"C:\shop\order.py:order")
        assert str(said) == r"there is no file C:\shop\order.py"
        assert said.remedy == "Separate folders by /, as in C:/shop/order.py."

    @pytest.mark.parametrize("text", ["a\0b.py:order", "x" * 5000 + ".py:order"])
    def test_what_is_no_path_at_all(self, text: str) -> None:
        assert "is no path" in str(refused(text))

    def test_a_folder(self, tmp_path: Path) -> None:
        assert str(refused(f"{tmp_path}:order")) == f"{tmp_path} is a folder"

    def test_a_device_is_not_read(self) -> None:
        assert str(refused("/dev/zero:order")) == "/dev/zero is no regular file"

    def test_a_file_of_another_kind(self, write: Write) -> None:
        assert "is no Python file by its name" in str(refused(f"{write('x', 'shop.json')}:order"))

    @pytest.mark.parametrize("name", ["", ":"])
    def test_a_name_that_is_missing(self, write: Write, name: str) -> None:
        path = write(BODY + "async def cancel(wf, input): ...\nasync def _one(x): ...\n")
        said = refused(f"{path}{name}")
        assert str(said) == f"{path} is a file, and not yet a workflow in it"
        assert said.remedy == f"Write {path}:cancel or {path}:order."

    def test_a_file_without_any_workflow(self, write: Write) -> None:
        path = write("x = 1\n")
        assert refused(path).remedy == f"Define `async def body(wf, input)` in it and write {path}:body."
        assert refused(f"{path}:order").remedy == f"Define `async def body(wf, input)` in it and write {path}:body."

    def test_two_colons(self, write: Write) -> None:
        path = write(BODY)
        assert refused(f"{path}::order").remedy == f"Write {path}:order."

    def test_a_name_that_is_mistyped(self, write: Write) -> None:
        path = write(BODY)
        said = refused(f"{path}:ordre")
        assert str(said) == f"there is no 'ordre' in {path}"
        assert said.remedy == "Did you mean 'order'?"

    def test_what_is_not_python(self, write: Write) -> None:
        said = refused(write.named("x = 1\nasync def order(wf, input:\n"))
        assert str(said) == "shop.py is not Python (line 2: '(' was never closed)"

    @pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"x = '\x00'\n"])
    def test_what_is_not_text(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "shop.py").write_bytes(content)
        assert str(refused(f"{tmp_path}/shop.py:order")).startswith("shop.py ")

    def test_an_import_that_is_missing(self, write: Write) -> None:
        said = refused(write.named("\n\nimport no_such_thing_at_all\n"))
        assert str(said) == "shop.py imports 'no_such_thing_at_all' at line 3, which is not there"

    def test_an_import_that_fails_inside_a_neighbour(self, write: Write) -> None:
        write("1 / 0\n", "broken_beside.py")
        said = refused(write.named("import broken_beside\n"))
        assert str(said) == "shop.py cannot be loaded at line 1: ZeroDivisionError: division by zero"

    def test_a_neighbour_that_is_not_python_is_not_blamed_on_the_file(self, write: Write) -> None:
        write("x = (\n", "unclosed_beside.py")
        assert "cannot be loaded at line 1: SyntaxError" in str(refused(write.named("import unclosed_beside\n")))

    def test_a_file_that_exits(self, write: Write) -> None:
        said = refused(write.named("import sys\nsys.exit(3)\n"))
        assert str(said) == "shop.py cannot be loaded at line 2: it exits"

    def test_a_file_that_failed_may_be_mended(self, write: Write) -> None:
        refused(write.named("1/0"))
        assert load_workload(write.named(BODY)).bare

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("order = 3", "order in shop.py is of type int, and no workflow"),
            ("class order: ...", "order in shop.py is a class, and no workflow"),
            ("def order(wf, input): ...", "order in shop.py is a plain function, and a workflow is an async one"),
            ("async def order(wf, input): yield 1", "order in shop.py yields, and a workflow returns"),
            ("async def order(wf): ...", "order in shop.py takes (wf), and a workflow two arguments"),
            ("async def order(wf, a, b): ...", "order in shop.py takes (wf, a, b), and a workflow two arguments"),
            (
                "async def order(wf, *, input): ...",
                "order in shop.py takes (wf, *, input), and a workflow two arguments",
            ),
        ],
    )
    def test_what_is_no_workflow(self, write: Write, text: str, said: str) -> None:
        found = refused(write.named(text))
        assert str(found) == said
        assert "`async def order(wf, input)`" in found.remedy


@given(st.text(max_size=40), st.sampled_from(["", ":", ".py:", ".py", "/", "\\\\"]), st.text(max_size=10))
def test_whatever_is_typed_is_answered_with_a_sentence(before: str, between: str, after: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_workload(f"no such folder/{before}{between}{after}")
    assert str(caught.value).isprintable()


class TestAWholeWorkload:
    HEAD = "import dataclasses as d\nfrom stormctl.workloads.step_storm import STEP_STORM as S\n"

    @pytest.mark.parametrize("kind", ["dict", "d.make_dataclass('I', ['id'])"])
    def test_its_input_is_a_dataclass_with_defaults(self, write: Write, kind: str) -> None:
        said = refused(write.named(f"{self.HEAD}order = d.replace(S, input_type={kind})\n"))
        assert str(said) == "the input_type of shop.py:order is no dataclass whose fields all have plain defaults"

    def test_its_body_is_checked_like_one_alone(self, write: Write) -> None:
        said = refused(write.named(f"{self.HEAD}order = d.replace(S, body=lambda wf, input: None)\n"))
        assert str(said).startswith("order in shop.py is a plain function")


class TestInput:
    HEAD = "from dataclasses import dataclass, field\n@dataclass(frozen=True)\nclass Item:\n    sku: str = 'x'\n"
    HEAD += "@dataclass(frozen=True)\nclass Order:\n    id: str\n    count: int = 1\n    wait_ms: float = 5.0\n"
    HEAD += "    item: Item = Item()\n    tags: list = field(default_factory=list)\n"

    def workload(self, write: Write, annotation: str = "Order") -> Workload:
        return load_workload(write.named(self.HEAD + f"async def order(wf, input: {annotation}): ..."))

    def test_the_recorded_input_becomes_the_dataclass(self, write: Write) -> None:
        made = self.workload(write).parse_input({"id": "o-1", "wait_ms": 7, "item": {"sku": "book"}})
        assert (made.id, made.count, made.wait_ms, made.item.sku, made.tags) == ("o-1", 1, 7, "book", [])

    @pytest.mark.parametrize("annotation", ["'Order'", "Order | None", "'Order | None'"])
    def test_the_annotation_may_be_written_in_other_ways(self, write: Write, annotation: str) -> None:
        assert self.workload(write, annotation).input_type.__name__ == "Order"

    @pytest.mark.parametrize("annotation", ["dict", "'Unknown'", "object", "'1 +'"])
    def test_any_other_annotation_leaves_the_input_as_it_is(self, write: Write, annotation: str) -> None:
        given: dict[str, Any] = {"anything": [1]}
        assert self.workload(write, annotation).parse_input(given) is given
        assert self.workload(write, annotation).parse_input(None) is None

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({}, "shop.py:order needs an input 'id'"),
            (None, "shop.py:order needs an input 'id'"),
            ({"id": "o", "cuont": 2}, "shop.py:order has no input 'cuont'"),
            ({"id": 3}, "input 'id' of shop.py:order is 3"),
            ({"id": "o", "count": True}, "input 'count' of shop.py:order is True"),
            ({"id": "o", "item": {"sku": 3}}, "input 'sku' of shop.py:order.item is 3"),
            ([1], "shop.py:order takes a Order, and the input is a list"),
        ],
    )
    def test_what_does_not_fit_is_named(self, write: Write, given: Any, said: str) -> None:
        with pytest.raises(PlanError) as caught:
            self.workload(write).parse_input(given)
        assert str(caught.value) == said

    def test_a_dataclass_that_refuses_its_values_is_no_traceback(self, write: Write) -> None:
        text = self.HEAD + "    def __post_init__(self): raise ValueError('no')\nasync def order(wf, input: Order): ..."
        with pytest.raises(PlanError, match="does not take its input: ValueError: no"):
            load_workload(write.named(text)).parse_input({"id": "o"})

    def test_the_input_is_read_from_the_row_of_the_run_or_from_its_first_event(self) -> None:
        assert recorded_input(LogBuilder().run_created(id=1).capture()) == {"id": 1}
        assert recorded_input(LogBuilder().run_created().capture()) is None
        from stormctl.history import Inline

        event = LogBuilder().run_created().changed(1, payload=Inline([{"id": 2}]))
        assert recorded_input(event.capture()) == [{"id": 2}]


def test_a_body_can_be_given_as_it_is() -> None:
    async def order(wf: Any, input: Any) -> None: ...

    assert of_body(order, "order").name == "order"
    with pytest.raises(UsageError, match="f is a plain function"):
        of_body(lambda wf, input: None, "f")
