"""What a conversation looks like to a model: one text, made by the template that was published with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from ttutor.errors import FileError


@dataclass(frozen=True)
class ChatTemplate:
    """A template in the language of Jinja, which is run in a sandbox: it comes with a file from somewhere.

    Attributes:
        source: the template.
        bos, eos: the marks for the start of a text and the end of an answer, which some templates put in.

    Example:
        >>> template = ChatTemplate("{% for one in messages %}<{{ one.role }}> {{ one.content }}{% endfor %}")
        >>> template.render([{"role": "user", "content": "Hello!"}])
        '<user> Hello!'
    """

    source: str
    bos: str = ""
    eos: str = ""

    def render(self, messages: Sequence[Mapping[str, str]], *, answers: bool = True) -> str:
        """The text that the model reads.

        Args:
            messages: each with a ``role`` ("system", "user" or "assistant") and a ``content``, the oldest first.
            answers: whether the model is to answer now, so that the text ends where its answer begins.

        Raises:
            FileError: the template is damaged, or refuses these messages.
        """
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        def refuse(reason: str) -> NoReturn:
            raise TemplateError(reason)

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = refuse
        marks = {"bos_token": self.bos, "eos_token": self.eos}
        try:
            template = environment.from_string(self.source)
            return template.render(messages=list(messages), add_generation_prompt=answers, **marks)
        except Exception as error:  # a template is a program of somebody else, and may fail as any program does
            raise FileError(f"the model's chat template cannot be used: {error}") from None
