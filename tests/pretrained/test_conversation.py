"""Conversations: what is read, what is kept, and how they end; with a small random model, whose answers are noise."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from ttutor.errors import FileError, SettingError
from ttutor.generation import Sampler, greedy_search
from ttutor.pretrained import ChatTemplate, Conversation, Pretrained, chat_command


def ask(conversation: Conversation, question: str) -> str:
    return "".join(conversation.answer(question))


def test_an_answer_is_what_greedy_search_writes_after_the_template(tiny: Pretrained) -> None:
    conversation = Conversation(tiny, longest_answer=7)
    text = ask(conversation, "THE THE")
    prompt = tiny.tokenizer.encode("<s>THE THE</s><s>", add_special_tokens=False).ids
    best = greedy_search(tiny.model, torch.tensor([prompt]), max_new_tokens=7, eos_id=tiny.end_ids)[0]
    assert text == tiny.tokenizer.decode(best.token_ids)
    assert conversation.messages[1] == {"role": "assistant", "content": text}
    assert conversation.ended_by == "longest_answer"


def test_no_token_is_read_twice(tiny: Pretrained) -> None:
    conversation = Conversation(tiny, longest_answer=5, choose=Sampler(torch.Generator().manual_seed(3)))
    for question in ("ABC", "THE", "THE THE"):
        ask(conversation, question)
        assert conversation.n_read == conversation.cache.n_tokens


def test_the_cache_agrees_with_a_fresh_reading(tiny: Pretrained) -> None:
    seen: list[torch.Tensor] = []

    def note(log_probabilities: torch.Tensor, rows: list[int]) -> torch.Tensor:
        seen.append(log_probabilities)
        return torch.tensor([10 + len(seen) % 20])  # any plain piece

    conversation = Conversation(tiny, longest_answer=4, choose=note)
    ask(conversation, "ABC")
    seen.clear()
    pieces = conversation.answer("THE")
    while not seen:
        next(pieces)
    pieces.close()
    ids = tiny.tokenizer.encode(conversation._text, add_special_tokens=False).ids[:-1]
    expected = tiny.model(torch.tensor([ids]))[:, -1].log_softmax(dim=-1)
    torch.testing.assert_close(seen[0], expected, rtol=0, atol=1e-4)


def test_who_stops_asking_stops_the_answer_and_the_rest_goes_on(tiny: Pretrained) -> None:
    conversation = Conversation(tiny, longest_answer=50, choose=lambda table, rows: torch.tensor([12]))
    pieces = conversation.answer("ABC")
    said = [next(pieces) for _ in range(4)]
    pieces.close()
    assert conversation.ended_by == "stopped"
    assert conversation.messages[-1]["content"] == "".join(said) != ""
    ask(conversation, "THE")
    assert conversation.n_read == conversation.cache.n_tokens
    unread = Conversation(tiny)
    pieces = unread.answer("ABC")
    next(pieces)
    pieces.close()
    assert unread.messages == []
    assert unread.cache.n_tokens == 0


def test_when_the_window_is_full_the_oldest_questions_go(tiny: Pretrained) -> None:
    conversation = Conversation(tiny, longest_answer=20, choose=lambda table, rows: torch.tensor([12]))
    for number in range(7):
        ask(conversation, "ABC" + str(number))
        assert conversation.cache.n_tokens <= conversation.window == 128
    assert conversation.n_forgotten > 0
    assert conversation.messages[0]["content"] == f"ABC{conversation.n_forgotten}"
    with pytest.raises(
        SettingError, match="the question takes .* tokens, and with room for an answer the model has 108"
    ):
        ask(conversation, "A" * 200)
    ask(conversation, "ABC")


def test_an_end_mark_at_once_is_an_empty_answer(tiny: Pretrained) -> None:
    conversation = Conversation(tiny, choose=lambda table, rows: torch.tensor([1]))
    assert ask(conversation, "ABC") == ""
    assert conversation.ended_by == "end"
    assert [one["role"] for one in conversation.messages] == ["user", "assistant"]


def test_what_cannot_converse_is_refused(tiny: Pretrained) -> None:
    with pytest.raises(SettingError, match="tiny.gguf has no chat template"):
        Conversation(dataclasses.replace(tiny, template=None))
    with pytest.raises(FileError, match="chat template cannot be used: only users"):
        ChatTemplate("{{ raise_exception('only users') }}").render([])
    with pytest.raises(FileError, match="cannot be used"):
        ChatTemplate("{% for %}").render([])
    with pytest.raises(FileError, match="unsafe"):
        ChatTemplate("{{ messages.__class__.__mro__ }}{{ ''.__class__.__mro__[1].__subclasses__() }}").render([])


def test_a_small_model_writes_on_one_thread(ttutor: Callable, tiny_file: Path, two_threads: None) -> None:
    ttutor("chat", "--model", tiny_file, "--longest-answer", 4, "THE")
    assert torch.get_num_threads() == 1


def test_the_command_answers_an_argument_or_a_pipe(ttutor: Callable, tiny_file: Path) -> None:
    asked = ttutor("chat", "--model", tiny_file, "--longest-answer", 4, "THE", "THE")
    assert "[cut after 4 tokens; --longest-answer allows more]" in asked.stderr
    assert ttutor("chat", "--model", tiny_file, "--longest-answer", 4, input="THE THE").stdout == asked.stdout
    shown = ttutor("chat", "--model", tiny_file, "--longest-answer", 4, "--show-template", "THE").stdout
    assert "[the model reads:]\n<s>THE</s><s>[and writes:]\n" in shown
    drawn = [
        ttutor("chat", "--model", tiny_file, "--temperature", 5, "--seed", seed, "--longest-answer", 9, "THE").stdout
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--temperature", "-1", "A"], "temperature must be positive"),
        (["--top-p", "0.5", "A"], "at temperature 0 nothing is"),
        ([], "there is no question"),
    ],
)
def test_the_command_says_what_is_wrong(ttutor: Callable, tiny_file: Path, arguments: list, message: str) -> None:
    assert message in ttutor("chat", "--model", tiny_file, *arguments, code=2, input="").output


def test_a_file_that_is_none_is_refused(ttutor: Callable, tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"nothing")
    assert "is no GGUF file" in ttutor("chat", "--model", "a.gguf", "A", code=2).output
    assert "there is no file b.gguf" in ttutor("chat", "--model", "b.gguf", "A", code=2).output
    assert "ends in .gguf, but came a.bin" in ttutor("chat", "--model", "a.bin", "A", code=2).output


def test_a_talk_in_the_terminal(
    tiny: Pretrained, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    lines = iter(["THE", KeyboardInterrupt, "A" * 300, "/new", "THE", EOFError])

    def type_in(prompt: str) -> str:
        line = next(lines)
        if isinstance(line, str):
            return line
        raise line

    monkeypatch.setattr("builtins.input", type_in)
    conversation = Conversation(tiny, longest_answer=3)
    chat_command._introduce(conversation)
    chat_command._talk(conversation, show_template=True)
    out = capsys.readouterr().out
    assert "tiny.gguf: 0 million parameters. It writes what is likely, which is often wrong." in out
    assert "/bye or Ctrl-D leaves." in out
    assert "[the question takes" in out
    assert "[a new conversation]\n[the model reads:]\n<s>THE</s><s>[and writes:]" in out


def test_ctrl_c_stops_the_answer_alone(tiny: Pretrained, capsys: pytest.CaptureFixture) -> None:
    def press(table: torch.Tensor, rows: list[int]) -> torch.Tensor:
        if len(conversation.messages[-1]["content"]) == 3:
            signal.raise_signal(signal.SIGINT)
        return torch.tensor([12])

    conversation = Conversation(tiny, choose=press)
    before = signal.getsignal(signal.SIGINT)
    chat_command._say_answer(conversation, "ABC", show_template=False)
    assert conversation.ended_by == "stopped"
    assert len(conversation.messages[-1]["content"]) == 4
    assert signal.getsignal(signal.SIGINT) is before
    assert "[stopped]" in capsys.readouterr().err


def test_the_small_model_knows_a_capital(smollm2: Pretrained) -> None:
    conversation = Conversation(smollm2, longest_answer=20)
    assert ask(conversation, "What is the capital of France?") == "The capital of France is Paris."
    assert conversation.n_read == conversation.cache.n_tokens
    rounded = Conversation(smollm2, longest_answer=20, eight_bits=True)
    assert ask(rounded, "What is the capital of France?") == "The capital of France is Paris."
