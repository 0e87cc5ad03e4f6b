"""A scripted model: it answers from a list, over as many turns as it takes.

AG2's own TestConfig starts its script again at every turn, so a conversation
needs this one. An exhausted script answers nothing, which ends a conversation.
"""

import inspect
import json
from collections.abc import Sequence
from typing import Any

from ag2.config import ModelConfig
from ag2.events import BaseEvent, ModelMessage, ModelResponse, ToolCallEvent, ToolCallsEvent


class Script(ModelConfig):
    """Each turn is a text, a call (or several), an exception to raise, or a
    function from the messages to one of these; a function may be async."""

    def __init__(self, *turns: Any) -> None:
        self.turns = list(turns)
        self.seen: list[list[BaseEvent]] = []

    @property
    def prompts(self) -> list[str]:
        """What the model was told last, at each call."""
        return [said(messages[-1]) for messages in self.seen]

    def copy(self) -> "Script":
        return self

    def create(self) -> "Script":
        return self

    async def __call__(self, messages: Sequence[BaseEvent], context: Any, **_: Any) -> ModelResponse:
        self.seen.append(list(messages))
        turn = self.turns.pop(0) if self.turns else ""
        if callable(turn) and not isinstance(turn, BaseEvent):
            turn = turn(messages)
            if inspect.isawaitable(turn):
                turn = await turn
        if isinstance(turn, BaseException):
            raise turn
        if isinstance(turn, str):
            message = ModelMessage(turn)
            await context.send(message)
            return ModelResponse(message)
        calls = [turn] if isinstance(turn, ToolCallEvent) else list(turn)
        return ModelResponse(tool_calls=ToolCallsEvent(calls))


def call(tool: str, **arguments: Any) -> ToolCallEvent:
    """The model asks for one tool."""
    return ToolCallEvent(tool, arguments=json.dumps(arguments))


def said(event: BaseEvent) -> str:
    """The text of a message as the model reads it."""
    parts = getattr(event, "parts", None)
    if parts is not None:
        return "\n".join(str(getattr(part, "content", part)) for part in parts)
    return str(getattr(event, "content", event))
