"""Small talk: what needs no model, in many languages; and what looks like it and is not."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.types import NewTurn, Role, Turn
from mcp_memory.longterm.turns import own_words, recall_block, small_talk_kind
from mcp_memory.server.prompts import PROMPTS
from mcp_memory.service.memory import Memory

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
REPORT = "The tests pass now. " + "I changed the parser so that it keeps the order of keys. " * 10


def turn(content: str, *, role: Role = "user", name: str | None = None) -> Turn:
    return Turn(
        id="t1", session="s", position=0, role=role, name=name, content=content, said_at=NOON, learned_at=NOON, sha256=""
    )  # fmt: skip


def after(before: str, content: str) -> str | None:
    return small_talk_kind(content, turn(before, role="assistant"))


@pytest.mark.parametrize(
    "text",
    """Hello! | hi there | Good morning everyone :) | Hey, how are you? | What's up? | Hello! How can I help you today?
    Hallo! | Guten Morgen | Grüß Gott | Wie geht's? | Bonjour ! | Ça va ? | ¡Hola! ¿Qué tal? | Buenos días | Ciao, come stai?
    Olá, tudo bem? | Bom dia! | Goedemorgen | Hej! | Cześć | Dzień dobry | Ahoj | Привет! | Добрый день | Как дела?
    Merhaba | Günaydın | Γεια σου | Καλημέρα | مرحبا | السلام عليكم | שלום | नमस्ते | Selamat pagi | Xin chào | สวัสดีครับ
    你好！ | 您好 | 早上好 | 你好，很高兴认识你。 | こんにちは | おはようございます！ | 안녕하세요 | 좋은 아침이에요""".replace(
        "\n", " | "
    ).split(" | "),
)
def test_greetings_are_noise_in_any_language(text: str) -> None:
    assert small_talk_kind(text) == "greeting"


@pytest.mark.parametrize(
    "text",
    """Thanks! | thank you so much | ok, thanks | Okay. | Got it! | Great, thanks | You're welcome. | Bye! | See you later!
    continue | keep going | haha | lol | Good night | Perfect, thank you very much!
    Danke! | Vielen Dank | alles klar, danke | Tschüss | Merci beaucoup | De rien | Au revoir | Gracias | ¡Muchas gracias! | Vale
    Grazie mille | Prego | Obrigada | Valeu | Dank je | Tack så mycket | Kiitos | Dzięki | Děkuji | Спасибо большое! | Хорошо, спасибо
    Teşekkürler | Ευχαριστώ | شكرا جزيلا | תודה רבה | धन्यवाद | Terima kasih | Cảm ơn | ขอบคุณค่ะ
    谢谢 | 好的，谢谢你！ | 不客气 | 哈哈哈 | 嗯嗯 | ありがとうございます | 了解しました | 감사합니다 | 네, 알겠습니다""".replace(
        "\n", " | "
    ).split(" | "),
)
def test_acknowledgements_are_noise_in_any_language(text: str) -> None:
    assert small_talk_kind(text) == "acknowledgement"
    assert after(REPORT, text) == "acknowledgement"


@pytest.mark.parametrize(
    "text",
    ["yes", "No.", "ok", "Porto", "the second one", "42", "later", "Morning", "sí", "nein", "好的", "はい", "네", "👍", "perfect", "Nice", "/data"],
)  # fmt: skip
def test_a_short_answer_to_a_question_is_signal(text: str) -> None:
    assert after("Shall I book the early train, or the late one?", text) is None
    assert after("您想订早班车吗？", text) is None


@pytest.mark.parametrize("text", ["ok", "Yes", "of course", "👍", "d'accord", "行"])
def test_assent_to_a_short_proposal_is_signal(text: str) -> None:
    assert after("Then I book the early train to Porto.", text) is None


@pytest.mark.parametrize("text", ["Agreed", "sounds good", "let's do that", "einverstanden", "同意"])
def test_an_agreement_is_signal_whatever_it_agrees_to(text: str) -> None:
    assert after(REPORT, text) is None


def test_thanks_answer_nothing() -> None:
    assert after("Shall I book the early train?", "Thank you!") == "acknowledgement"
    assert after("Thank you!", "Of course!") == "acknowledgement"


@pytest.mark.parametrize(
    "text",
    """Hello, I am Maya | hi, my son is called Otto | thanks, I moved to Porto | ok but never before nine | Thanks for the flowers
    /home/maya/diary.md is mine | /etc/hosts | /etc | /tmp | /remember I am allergic to nuts | /new plan: Porto in May
    你好，我叫张曼婷 | 好莱坞 | 谢谢你的猫 | はいチーズ工場で働いています | Hallo Welt | no sugar | Good Charlotte | x | 7""".replace(
        "\n", " | "
    ).split(" | "),
)
def test_one_word_more_makes_it_signal(text: str) -> None:
    assert small_talk_kind(text) is None


def test_the_name_of_whoever_spoke_before_says_nothing() -> None:
    before = turn("Bye! Take care.", role="assistant", name="Joanna Reis")
    assert small_talk_kind("Bye Joanna! Take care!", before) == "acknowledgement"
    assert small_talk_kind("Bye Otto! Take care!", before) is None


@pytest.mark.parametrize("text", ["/new", "/reset", "/compact", "/model opus-5", "/some-skill", "/mcp"])
def test_commands_are_noise(text: str) -> None:
    assert small_talk_kind(text) == "command"


@pytest.mark.parametrize(
    "text",
    [
        "NO_REPLY",
        "HEARTBEAT_OK",
        "A new session was started via /new or /reset. Execute your startup now.",
        "✅ New session started · model: some-model",
        "Pre-compaction memory flush. Store durable memories now.",
        "System: [2026-02-21 16:24:25 UTC] Compacted (95k → 21k)",
        "[Request interrupted by user for tool use]",
        "[Image #1]",
        "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>",
        "<local-command-stdout>done</local-command-stdout>",
        "<system-reminder>Files have changed.\nDo not mention it.</system-reminder>",
    ],
)
def test_what_the_host_says_is_noise(text: str) -> None:
    assert small_talk_kind(text) == "host"


def test_what_somebody_says_beside_the_host_is_signal() -> None:
    text = "<system-reminder>Files have changed.</system-reminder>\nI moved to Porto."
    assert small_talk_kind(text) is None
    assert own_words(text) == "I moved to Porto."
    told = "<command-name>/remember</command-name><command-args>I am allergic to nuts</command-args>"
    assert small_talk_kind(told) is None


@pytest.mark.parametrize("text", ["???", "...", "!!", "—", "👍", "🎉🎉", "\u200b"])
def test_symbols_alone_are_noise(text: str) -> None:
    assert small_talk_kind(text) == "symbols"


@pytest.mark.parametrize(
    "text",
    ["[a4 paper] is out, buy two packs", "[a1] Smith 2020 shows that bees sleep", "see\n[t1 tent] two persons, green"],
)
def test_brackets_with_a_letter_and_a_number_are_the_users_own(text: str) -> None:
    assert own_words(text) == text
    assert small_talk_kind(text) is None


@pytest.mark.parametrize(
    "lines",
    [
        "[a57 2026-05-07 · said by Ines] Lives in Porto\n[t12 assistant] Noted\n> t3 · user · 2026-05-07 10:00: x",
        "- [a57 · 2026-05-07] Lives in Porto\n- [t12] I moved\n> t3 · user · 2026-05-07 10:00: x",  # earlier versions
    ],
)
def test_copies_of_what_was_recalled_are_noise(lines: str) -> None:
    assert small_talk_kind(lines) == "recalled"
    assert small_talk_kind(recall_block(lines, part="dynamic")) == "recalled"
    mixed = f"From memory:\n{lines}\nBut I live in Braga now."
    assert small_talk_kind(mixed) is None
    assert own_words(mixed) == "From memory:\nBut I live in Braga now."


async def test_the_prompts_of_this_server_are_noise(memory: Memory) -> None:
    await memory.record_turns([NewTurn(role="user", content="I live in Porto.")], session="s")
    await memory.offload_tool_result(tool_name="ls", result="a\n" * 2000, arguments={}, task="Tidy up", session="s")
    for prompt in PROMPTS:
        said = await prompt.run(memory, "Porto" if prompt.name == "recall" else "")
        assert small_talk_kind(said) == "host", prompt.name


@given(st.text(max_size=150), st.none() | st.text(max_size=50))
def test_any_text_has_a_label_or_none(text: str, before: str | None) -> None:
    kind = small_talk_kind(text or ".", None if before is None else turn(before))
    assert kind in {None, "greeting", "acknowledgement", "command", "host", "symbols", "recalled"}


@given(st.text("abcäßяж你好안녕 0123", min_size=1, max_size=40), st.sampled_from(["zq", "zq7", "7", "жщ", "龘"]))
def test_what_holds_a_word_that_is_in_no_table_is_signal(text: str, word: str) -> None:
    assert small_talk_kind(f"hello {word} {text}") is None
