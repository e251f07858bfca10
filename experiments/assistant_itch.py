"""What a published assistant says to sums, with its template and without: the beginning of chapter 13.

SmolLM2-135M-Instruct (`ttutor fetch smollm2`), opened by our own classes, greedily: two sums as questions in its chat
template, and the same questions as bare text, continued; the first tokens word for word.
"""

import torch

from experiments import _record
from ttutor.pretrained import Conversation, Pretrained, load

QUESTIONS = ["What is 17 + 25?", "What is 48 + 31?"]
LONGEST = 16


@torch.inference_mode()
def continued(chat: Pretrained, text: str) -> str:
    """Bare text, continued by the likeliest tokens."""
    ids = chat.ids(text)
    n_read = ids.shape[1]
    for _ in range(LONGEST):
        token = chat.model(ids)[:, -1].argmax(dim=-1, keepdim=True)
        ids = torch.cat([ids, token], dim=1)
        if int(token) in chat.end_ids:
            break
    return chat.tokenizer.decode(ids[0, n_read:].tolist(), skip_special_tokens=False)


def main() -> None:
    torch.set_num_threads(1)
    started = _record.start()
    chat = load("smollm2")
    rows = [
        {
            "asked": question,
            "in the template": "".join(Conversation(chat, longest_answer=LONGEST).answer(question)),
            "bare": continued(chat, question),
        }
        for question in QUESTIONS
    ]
    print(rows)
    _record.write("assistant_itch", {"rows": rows}, seeds=[0], started=started)


if __name__ == "__main__":
    main()
