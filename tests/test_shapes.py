"""The names of qkv's tensors, and the check of them."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path
from types import ModuleType

import pytest
import torch

import qkv
from tests.shapes import ShapeError, checking_shapes, legend, suffix, suffixed_names

PACKAGE = Path(qkv.__file__).parent
LETTERS = frozenset("1RWDK")
_numbers = itertools.count()


def module_with(folder: Path, code: str) -> ModuleType:
    """A module in the folder: what the check looks at."""
    name = f"made_up_{next(_numbers)}"
    path = folder / f"{name}.py"
    path.write_text(f"import dataclasses, typing, numpy, torch\nfrom torch import Tensor\n{code}")
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def complaint_about(folder: Path, body: str, *, classes: str = "") -> str:
    """What the check says of a function with this body; nothing if it is content."""
    function = "def work():\n    " + body.replace("; ", "\n    ")
    work = module_with(folder, f"{classes}\n{function}\n").work
    try:
        with checking_shapes(folder, LETTERS):
            work()
    except ShapeError as error:
        return str(error).partition("work: ")[2]
    return ""


@pytest.mark.parametrize(
    "body",
    [
        "x_RWD = torch.zeros(2, 3, 4); y_RWD = x_RWD + 1; length_R = torch.ones(2)",
        "visible_R1WK = torch.ones(2, 1, 3, 5); x_RWD = torch.zeros(2, 3, 4)",
        "ids_RW = numpy.zeros((2, 3)); x_RWD = torch.zeros(2, 3, 4)",
        "x_RWD = torch.zeros(1, 1, 1)",
        "x_RWD = None; mask_RW = [1, 2]; beta_1 = torch.zeros(2, 3); MAX_RW = torch.zeros(4)",
        "x_RWD = torch.zeros(9, 9); x_RWD = torch.zeros(2, 3, 4)",
    ],
)
def test_true_names_pass(tmp_path: Path, body: str) -> None:
    assert complaint_about(tmp_path, body) == ""


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("x_RWD = torch.zeros(2, 3)", "x_RWD promises 3 dimensions and has shape (2, 3)"),
        ("ids_RW = numpy.zeros(6)", "ids_RW promises 2 dimensions and has shape (6,)"),
        ("counted_R1 = torch.zeros(2, 3)", "counted_R1 has shape (2, 3): 1 is 3 here and 1 in every name"),
        ("score_RR = torch.zeros(2, 3)", "score_RR has shape (2, 3): R is 3 here and 2 in score_RR"),
        ("x_RQ = torch.zeros(2, 3)", "x_RQ uses Q, which the legend does not explain"),
        (
            "x_RWD = torch.zeros(2, 3, 4); y_RWD = torch.zeros(2, 5, 4)",
            "y_RWD has shape (2, 5, 4): W is 5 here and 3 in x_RWD",
        ),
        ("x_RW = torch.zeros(2); copies = [x_RW for _ in range(1)]", "x_RW promises 2 dimensions and has shape (2,)"),
    ],
)
def test_untrue_names_are_named(tmp_path: Path, body: str, complaint: str) -> None:
    assert complaint_about(tmp_path, body).splitlines()[0] == complaint


TUPLES = """
class Pair(typing.NamedTuple):
    key_RK: Tensor
    value_RK: Tensor

class Holder(typing.NamedTuple):
    pairs: tuple

@dataclasses.dataclass
class Data:
    ids_RW: Tensor

class Module(torch.nn.Module):
    def __init__(self, *shape):
        super().__init__()
        self.weight_DD = torch.nn.Parameter(torch.zeros(shape))
"""


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("long = Pair(torch.zeros(2, 3), torch.zeros(2, 3)); short = Pair(torch.zeros(2, 1), torch.zeros(2, 1))", ""),
        ("x_RK = torch.zeros(6, 7); pair = Pair(torch.zeros(2, 3), torch.zeros(2, 3))", ""),
        (
            "pair = Pair(torch.zeros(2, 3), torch.zeros(2, 4))",
            "pair.value_RK has shape (2, 4): K is 4 here and 3 in pair.key_RK",
        ),
        (
            "state = Holder((Pair(torch.zeros(2, 3), None), Pair(None, torch.zeros(2))))",
            "state.pairs[1].value_RK promises 2 dimensions and has shape (2,)",
        ),
        ("data = Data(torch.zeros(2))", "data.ids_RW promises 2 dimensions and has shape (2,)"),
        ("self = Module(3, 3)", ""),
        ("self = Module(3, 4)", "self.weight_DD has shape (3, 4): D is 4 here and 3 in self.weight_DD"),
        ("loop = [torch.zeros(2)]; loop.append(loop)", ""),
    ],
)
def test_fields_of_an_object_agree_among_themselves(tmp_path: Path, body: str, complaint: str) -> None:
    assert (complaint_about(tmp_path, body, classes=TUPLES).splitlines() or [""])[0] == complaint


def test_a_complaint_says_where(tmp_path: Path) -> None:
    module = module_with(tmp_path, "class Layer:\n    def forward(self, x_RW):\n        return x_RW\n")
    with (
        pytest.raises(ShapeError, match=r"made_up_\d+\.py:4 Layer\.forward: x_RW promises 2"),
        checking_shapes(tmp_path, LETTERS),
    ):
        module.Layer().forward(torch.zeros(3))


def test_only_the_folder_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    module = module_with(tmp_path, "def work(x_RW):\n    return x_RW\n")
    with checking_shapes(tmp_path / "inside", LETTERS):
        module.work(torch.zeros(3))


def test_an_error_of_the_code_itself_comes_first(tmp_path: Path) -> None:
    module = module_with(tmp_path, "def work(x_RW):\n    raise KeyError('the real trouble')\n")
    with pytest.raises(KeyError, match="the real trouble"), checking_shapes(tmp_path, LETTERS):
        module.work(torch.zeros(3))


def test_a_suffix_is_capitals_after_a_name() -> None:
    assert suffix("visible_R1WK") == "R1WK"
    assert suffix("_x_PD") == "PD"
    assert suffix("logits_1V") == "1V"
    assert [suffix(name) for name in ("x", "beta_1", "MAX_SIZE", "TABLE_3", "_RWD", "x_Rw", "head_width")] == [None] * 7


def test_the_legend_is_read_from_the_docstring() -> None:
    assert legend(
        '"""Parts (R times W).\n\n    R  rows, for now\n    N  some, B others, C more (D)\n    1  one\n"""'
    ) == {*"RNBC1"}
    assert legend() >= {*"RWKDHEUFVP1"}


def test_every_suffix_in_the_package_is_in_the_legend() -> None:
    letters = legend()
    unknown = [
        f"{path.relative_to(PACKAGE.parent)}:{line} {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, name in suffixed_names(path.read_text())
        if not set(suffix(name) or "") <= letters
    ]
    assert unknown == []


def test_suffixed_names_are_found_wherever_they_stand() -> None:
    source = (
        "def f(a_R, *, b_R=1):\n    c_R: int = a_R\n    g(d_R=self.e_R)\n    return [f_R for f_R in (lambda h_R: None)]"
    )
    assert {name for _, name in suffixed_names(source)} == {"a_R", "b_R", "c_R", "d_R", "e_R", "f_R", "h_R"}
