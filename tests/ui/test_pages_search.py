"""The search page: hits with the share of each signal, what just missed, what recall would bring."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from mcp_memory.core.text import one_line
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory
from mcp_memory.ui.components import Page
from mcp_memory.ui.elements import text_of
from tests.ui.holding import at, marked, reading
from tests.ui.shown import elements, forms, links, text


async def test_without_a_query_the_page_says_what_can_be_asked(maya: Memory) -> None:
    page = await at(maya, "/search")
    assert "What you can ask" in text(page)
    assert all(link.startswith("/search?q=") for link in links(page))
    (form,) = forms(page)
    assert {"q", "client", "kind", "entity", "since", "until", "as_of", "session", "role"} == set(form.values)


async def test_all_layers_are_one_list_with_the_words_of_the_query_marked(maya: Memory) -> None:
    page = await at(maya, "/search?q=left+knee")
    assert page.title == "Search: left knee"
    assert {"/a2", "/scene/the-knee"} <= set(links(page))
    assert {"left", "knee"} <= set(marked(page))
    assert "score" not in text(page)


async def test_an_identifier_comes_first_whatever_layer_has_it(maya: Memory) -> None:
    await maya.offload_tool_result("bash", "start\n" * 40 + "booking SKV2-202610250230 confirmed\n", arguments={})
    for number in range(12):
        await maya.record_turns([NewTurn(role="user", content=f"Which booking was number {number}?")], session="b")
    first = next(each for each in elements(await at(maya, "/search?q=SKV2-202610250230")) if each.tag == "li")
    assert "SKV2-202610250230" in text_of(first)


async def test_the_heading_says_when_nothing_is_close(maya: Memory) -> None:
    page = await at(maya, "/search?q=quarterly+tax+form+of+the+bakery")
    (heading,) = (text_of(each) for each in elements(page) if each.tag == "h2")
    assert heading == "Nothing close"


async def test_the_ranking_is_explained_with_the_share_of_each_signal_folded_away(maya: Memory) -> None:
    (why,) = (link for link in links(await at(maya, "/search?q=left+knee")) if "in=why" in link)
    page = await at(maya, why)
    folds = [one for one in elements(page) if one.tag == "details" and text_of(one).startswith("Why it was found")]
    assert folds
    assert not any("open" in one.attributes for one in folds)
    bars = [text_of(one) for one in elements(page) if one.attributes.get("class") == "bars"]
    assert any(bar.startswith(("words0.", "meaning0.")) for bar in bars)


async def test_hits_say_who_said_them_and_when(maya: Memory) -> None:
    page = await at(maya, "/search?q=river&in=turn")
    assert re.search(r"20 Nov 2026, \d\d:\d\dyou", text(page))
    assert any(re.match(r"/session/s1\?q=river#t", link) for link in links(page))


async def test_a_past_time_in_the_query_filters_until_it_is_removed(maya: Memory) -> None:
    for month, place in ((3, "Bergen"), (9, "Oslo")):
        told = NewTurn(
            role="user", content=f"The harbour meeting is in {place}.", said_at=datetime(2026, month, 12, tzinfo=UTC)
        )
        await maya.record_turns([told], session=place)
    page = await at(maya, "/search?q=harbour+meeting+in+March+2026&in=turn")
    assert ("Bergen" in text(page), "Oslo" in text(page)) == (True, False)
    (remove,) = (link for link in links(page) if "time=any" in link and "in=turn" in link)
    assert "1 Mar 2026 to 31 Mar 2026 ×" in text(page)
    page = await at(maya, remove)
    assert ("Bergen" in text(page), "Oslo" in text(page)) == (True, True)
    assert "Only 1 Mar 2026 to 31 Mar 2026" in text(page)


async def test_without_a_close_row_of_the_time_the_rows_of_any_time_are_shown(maya: Memory) -> None:
    page = await at(maya, "/search?q=river+knee+in+January+2026")
    assert "Nothing close is from 1 Jan 2026 to 31 Jan 2026; these are from any time." in text(page)
    assert "/a2" in links(page)


async def test_the_page_says_how_the_question_was_read_and_leads_to_what_recall_would_bring(maya: Memory) -> None:
    page = await at(maya, "/search?q=does+her+knee+hurt&in=why")
    assert ", ".join((await maya.explain("does her knee hurt")).words) in text(page)
    (to_recall,) = (link for link in links(await at(maya, "/search?q=does+her+knee+hurt")) if "in=recall" in link)
    page = await at(maya, to_recall)
    recall = await maya.explain_recall("does her knee hurt")
    assert f"{recall.tokens:,} tokens" in text(page)
    assert recall.brought in text(page)
    for verdict in recall.verdicts:
        assert f"/{verdict.id}" in links(page)
        assert one_line(verdict.text, 60) in text(page)


async def test_a_reader_finds_the_same(maya: Memory) -> None:
    page = await reading(maya, "/search?q=left+knee")
    assert "/a2" in links(page)
    assert [one.action for one in forms(page)] == ["/search"]


async def test_turns_are_searched_alone_and_page_by_page(maya: Memory) -> None:
    said = [NewTurn(role="user", content=f"The ferry number {n} was late.") for n in range(60)]
    await maya.record_turns(said, session="ferries")
    first = await at(maya, "/search?q=ferry&in=turn")
    (more,) = [link for link in links(first) if "cursor=" in link]
    assert "in=turn" in more
    second = await at(maya, more)
    found = [{link for link in links(page) if link.startswith("/t")} for page in (first, second)]
    assert found[0].isdisjoint(found[1])
    assert "ferry" in marked(first)


async def test_a_filter_of_turns_narrows_the_search_to_them(maya: Memory) -> None:
    page = await at(maya, "/search?q=hurts&session=s1")
    assert {link for link in links(page) if link[:2] in ("/t", "/a")} == {"/t2?q=hurts"}
    assert "Nothing found" in text(await at(maya, "/search?q=hurts&role=tool"))


async def test_a_client_narrows_the_search_to_what_it_recorded(maya: Memory) -> None:
    for session in ("codex-5e6f7a8b", "cursor-1a2b3c4d"):
        await maya.record_turns([NewTurn(role="user", content="The kettle is red.")], session=session)
    page = await at(maya, "/search?q=kettle&client=codex")
    assert {link.partition("#")[0] for link in links(page) if "/session/" in link} == {
        "/session/codex-5e6f7a8b?q=kettle"
    }


async def test_statements_are_searched_as_they_were_then(maya: Memory) -> None:
    await maya.remember("Maya lives in Porto.", supersedes=["a1"], valid_from="2026-11-20 20:00", typed=True)
    then = await at(maya, "/search?q=Maya+lives+in&as_of=2026-11-20T13:00")
    now = await at(maya, "/search?q=Maya+lives+in&in=statement")
    assert "/a1" in links(then)
    assert "/a1" not in links(now)


async def test_what_is_wrong_with_a_filter_stands_under_the_form(maya: Memory) -> None:
    for address in ("/search?q=knee&since=whenever", "/search?q=knee&in=turn&since=whenever"):
        page = await at(maya, address)
        assert "whenever" in text(page)
        assert [one.action for one in forms(page)] == ["/search"]


async def test_an_id_leads_to_its_page_and_strange_words_find_nothing(maya: Memory) -> None:
    assert "Open a2" in text(await at(maya, "/search?q=a2"))
    page = await at(maya, "/search?q=%22%3E%3Cscript%3E&in=turn")
    assert page.title == 'Search: "><script>'
    assert not [one for one in elements(page) if one.tag == "script"]


async def test_a_first_name_finds_the_person_first_with_what_they_are_to_the_user(memory: Memory) -> None:
    name = "Nkechi Obi"
    await memory.remember("Nkechi Obi is my customer.", entity="user", relation="customer", value=name, typed=True)
    await memory.record_turns([NewTurn(role="user", content="Nkechi pays on Friday.")], session="s")
    page = await at(memory, "/search?q=nkechi")
    assert "Nkechi Obi" in text(page)
    assert "your customer" in text(page)
    assert next(link for link in links(page) if "/t" in link or "/entity/" in link) == "/entity/Nkechi%20Obi"


def rows(page: Page) -> list[str]:
    return [text_of(each) for each in elements(page) if each.tag == "li" and each.attributes.get("tabindex") == "-1"]


def under(page: Page, heading: str) -> list[str]:
    return [
        text_of(row)
        for each in elements(page)
        if each.tag == "section" and text_of(each).startswith(heading)
        for row in elements(Page(title="", body=(each,)))
        if row.tag == "li"
    ]


async def test_people_come_first_then_messages_pages_and_results_in_one_line(memory: Memory) -> None:
    await memory.remember(
        "Nkechi Obi is my customer.", entity="user", relation="customer", value="Nkechi Obi", typed=True
    )
    await memory.offload_tool_result("bash", "start\n" * 40 + "mail to Nkechi Obi sent\n" * 3, session="s")
    said = ("Nkechi Obi wants all 14 machines serviced.", "The weather is fine.")
    await memory.record_turns([NewTurn(role="user", content=content) for content in said], session="s")
    page = await at(memory, "/search?q=who+is+Nkechi+Obi")
    found = under(page, "Found") or under(page, "Perhaps")
    assert found[0].startswith("Nkechi Obi")
    assert found[-1].startswith("bash")
    assert any("14 machines" in row for row in found[1:-1])
    assert not [each for each in elements(page) if each.tag == "pre"]
    assert [each for each in elements(await at(memory, "/search?q=Nkechi&in=result")) if each.tag == "pre"]


async def test_a_message_with_all_words_of_the_query_is_found_and_not_less_close(memory: Memory) -> None:
    said = ["A standard service costs 65 euros.", "The standard service costs 72 euros from January."]
    said += [f"Machine {number} came in today." for number in range(12)]
    for number, content in enumerate(said):
        await memory.record_turns([NewTurn(role="user", content=content)], session=f"s{number}")
    found = under(await at(memory, "/search?q=standard+service"), "Found")
    assert {"65" in row or "72" in row for row in found} == {True}
    assert len(found) == 2


async def test_of_a_page_the_sentences_with_the_words_are_shown(maya: Memory) -> None:
    page = await at(maya, "/search?q=knee&in=page")
    (row, *_) = rows(page)
    assert "knee" in row
    scene = next(scene for scene in await maya.scenes() if scene.slug == "the-knee")
    assert len(row) < len(scene.body) or scene.body.count("\n") < 3


async def test_what_is_opened_from_a_search_carries_the_query(maya: Memory) -> None:
    await maya.offload_tool_result("bash", "start\n" * 40 + "the river is high\n", session="s1")
    page = await at(maya, "/search?q=river")
    for link in (link for link in links(page) if link[:3] in ("/t1", "/t2", "/r-")):
        assert "q=river" in link
    assert "river" in marked(await at(maya, next(link for link in links(page) if link.startswith("/t"))))
