"""Systems that translate, all from the same random weights; each is run in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.marian import BEGIN, END, PADDING, marian
from qkv.engines.shortlist import Shortlist
from qkv.errors import QkvError
from qkv.export.shortlist import shortlist_sizes
from qkv.processors import usable_cores
from qkv.search.beam import beam_search
from qkv.search.engine import Engine
from qkv.search.hypothesis import Limits, paper_penalty

Ids = list[list[int]]
Translate = Callable[[Ids, int], Ids]
"""From sources and the width of a beam to what was written."""

LENGTH = 30


def ranks(random: np.random.Generator, vocabulary: int, shape: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Ids by Zipf's law, the frequent ones first; a batch says some of them many times, as text does."""
    return END + 2 + np.exp(random.uniform(0, np.log(vocabulary - END - 2), shape)).astype(np.int64) - 1


def made_up_shortlist(vocabulary: int) -> Shortlist:
    """One of the sizes that `qkv export` learns."""
    count, frequent = shortlist_sizes(vocabulary)
    likely = np.random.default_rng(2).integers(END + frequent, vocabulary, (1, vocabulary, count), dtype=np.uint32)
    return Shortlist(likely, np.arange(END, END + frequent)[None])


class Weights:
    """The model, as each system takes it; nothing ends by itself, so that all write the same number of tokens."""

    def __init__(self, recipe_name: str, vocabulary: int) -> None:
        import torch

        from qkv.recipes import recipe

        torch.manual_seed(1)
        self.vocabulary = vocabulary
        self.marian = marian(recipe(recipe_name).model, vocabulary, positions=256).eval()
        with torch.no_grad():
            # Its embedding points away from all that is written.
            self.marian.model.shared.weight[END] = 0

    def ours(self) -> Any:
        from qkv.convert.marian import from_marian
        from qkv.models.build import assemble

        config, weights = from_marian(self.marian.config.to_dict(), self.marian.state_dict())
        model = assemble(config, self.vocabulary)
        model.load_state_dict(weights)
        return model.eval()

    def write(self, folder: Path) -> None:
        """Everything that is read and not built again by those who use it."""
        from qkv.engines.plain import usual_looks
        from qkv.export.directory import write_graphs

        model = self.ours()
        shortlist = made_up_shortlist(self.vocabulary)
        for precision, learned in (("float32", None), ("int8", shortlist)):
            (folder / precision).mkdir()
            write_graphs(folder / precision, model, precision, usual_looks(model).heads, learned)
        self._write_ctranslate2(folder / "ctranslate2")
        _write_vocabulary_map(folder / "ctranslate2" / "vmap.txt", shortlist)

    def _write_ctranslate2(self, folder: Path) -> None:
        from ctranslate2.converters.transformers import BartLoader

        config, loader = self.marian.config, BartLoader()
        config.normalize_before = config.normalize_embedding = False
        spec = loader.get_model_spec(self.marian)
        loader.set_vocabulary(spec, [str(token) for token in range(self.vocabulary)])
        spec.config.bos_token = spec.config.decoder_start_token = str(BEGIN)
        spec.config.eos_token = str(END)
        spec.config.unk_token = str(END + 1)
        spec.validate()
        spec.optimize(quantization="int8")
        folder.mkdir()
        spec.save(str(folder))


def _write_vocabulary_map(path: Path, shortlist: Any) -> None:
    """The same shortlist as CTranslate2 reads it: what may always come, then for each token what may come of it."""
    rows = [("", shortlist.frequent[0].tolist())]
    rows += [(str(token), sorted({token, *likely})) for token, likely in enumerate(shortlist.likely[0].tolist())]
    path.write_text("".join(f"{token}\t{' '.join(map(str, some))}\n" for token, some in rows), encoding="utf-8")


def searching(engine: Engine[Any], *, forbidden: tuple[int, ...] = ()) -> Translate:
    def translate(sources: Ids, width: int) -> Ids:
        limits = Limits(begin=BEGIN, end=END, longest=[LENGTH] * len(sources), forbidden=forbidden)
        found = beam_search(engine, engine.start(sources), limits, width=width, penalty=paper_penalty(0.6))
        return [hypotheses[0].ids for hypotheses in found]

    return translate


def with_torch(weights: Weights, _: Path) -> Translate:
    from qkv.engines.plain import PlainEngine
    from qkv.models.build import order_weights

    model = weights.ours()
    order_weights(model)
    return searching(PlainEngine(model, PADDING))


def with_onnx(_: Weights, folder: Path, *, precision: str, shortlist: bool) -> Translate:
    from qkv.engines.onnx import OnnxEngine
    from qkv.engines.side_by_side import SideBySide

    return searching(SideBySide(OnnxEngine(folder / precision, shortlist=shortlist)))


def with_generate(weights: Weights, _: Path) -> Translate:
    import torch

    def translate(sources: Ids, width: int) -> Ids:
        written = weights.marian.generate(
            input_ids=torch.tensor(sources),
            attention_mask=torch.ones(len(sources), len(sources[0]), dtype=torch.long),
            num_beams=width,
            do_sample=False,
            max_new_tokens=LENGTH,
            length_penalty=0.6,
            bad_words_ids=None,
        )
        return [row[1:] for row in written.tolist()]

    return translate


def with_ctranslate2(_: Weights, folder: Path, *, together: bool = True, shortlist: bool = False) -> Translate:
    """All cores on a batch `together`, or a part of the batch for each."""
    import ctranslate2

    cores = usable_cores()
    groups, threads = (1, cores) if together else (cores, 1)
    translator = ctranslate2.Translator(
        str(folder / "ctranslate2"), compute_type="int8", inter_threads=groups, intra_threads=threads
    )

    def translate(sources: Ids, width: int) -> Ids:
        told = translator.translate_batch(
            [[str(token) for token in source] for source in sources],
            beam_size=width,
            max_decoding_length=LENGTH,
            max_batch_size=-(-len(sources) // groups),
            length_penalty=0.6,
            use_vmap=shortlist,
        )
        return [[int(token) for token in one.hypotheses[0]] for one in told]

    return translate


SYSTEMS: dict[str, Callable[[Weights, Path], Translate]] = {
    "generate() float32": with_generate,
    "CTranslate2 int8": with_ctranslate2,
    "CTranslate2 int8, AVX-512": with_ctranslate2,
    "CTranslate2 int8, apart": partial(with_ctranslate2, together=False),
    "CTranslate2 int8, AVX-512, apart": partial(with_ctranslate2, together=False),
    "with our shortlist, CTranslate2": partial(with_ctranslate2, together=False, shortlist=True),
    "qkv torch float32": with_torch,
    "qkv float32": partial(with_onnx, precision="float32", shortlist=False),
    "qkv int8": partial(with_onnx, precision="int8", shortlist=False),
    "qkv int8, shortlist": partial(with_onnx, precision="int8", shortlist=True),
}
"""A peer's rows begin with its name; what begins otherwise is no peer as its users know it."""
ENVIRONMENTS = {name: {"CT2_FORCE_CPU_ISA": "AVX512"} for name in SYSTEMS if "AVX-512" in name}
"""What the instruction set is chosen by: a variable that is read when the library is loaded."""


class Timed(NamedTuple):
    seconds: float
    work: float
    """Seconds that processors worked for it, all threads together: what others do on the machine disturbs it less."""
    ids: Ids


class Process:
    """A system in a process of its own, which waits while others are asked."""

    def __init__(self, system: str, recipe_name: str, vocabulary: int, folder: Path) -> None:
        self._system = system
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.translators", system, recipe_name, str(vocabulary), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Threads that wait for one another spin by default, and would take the cores from whoever is timed next.
            env={**os.environ, "GOMP_SPINCOUNT": "1000", **ENVIRONMENTS.get(system, {})},
            text=True,
        )

    def translate(self, sources: Ids, width: int) -> Timed:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # Where it has ended already, nobody reads; that no answer comes says so.
        with suppress(BrokenPipeError):
            print(json.dumps([sources, width]), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer.endswith("\n"):
            raise QkvError(f"{self._system} ended with code {self._process.wait()} before it had translated")
        return Timed(*json.loads(answer))

    def close(self) -> None:
        self._process.communicate()


def main() -> None:
    """Answers what it is asked, a line at a time: how long it took, and what was written."""
    system, recipe_name, vocabulary, folder = sys.argv[1:]
    translate = SYSTEMS[system](Weights(recipe_name, int(vocabulary)), Path(folder))
    answers = os.fdopen(os.dup(1), "w")
    # What libraries have to say goes where nobody takes it for an answer.
    os.dup2(2, 1)
    for line in sys.stdin:
        sources, width = json.loads(line)
        begin, work = time.perf_counter(), time.process_time()
        ids = translate(sources, width)
        timed = Timed(time.perf_counter() - begin, time.process_time() - work, ids)
        print(json.dumps(timed), file=answers, flush=True)


if __name__ == "__main__":
    main()
