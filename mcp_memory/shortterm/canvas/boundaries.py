"""Words by which people end a task, begin another or come back to one: one entry a language, as patterns.

Each pattern is matched at the start of a clause (see `boundary`), without case. What begins a task has the rest of
its clause for a name. They are few on purpose: a boundary that is missed costs a folding by hand, one that was never
there tears a task in two.

Where one task ends and another begins, by what was said since its last step.

Guarantees: pure and deterministic; cautious: when in doubt the task goes on. What the user says counts; of what the
agent says only that the task is done. Text in code, in quotes and far down a long message is not listened to.

A new task is begun by words that say so ("next task: …", "let's move on to …"), by "now …" after a task was said to be
done, by a request in a later message than the one that said so, and by "now let's build …" that shares no word with
the task. "Back to …" takes up the earlier task that its words mean. A task that is said to be done goes on all the
same until something else begins: what is done about it belongs to it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from mcp_memory.core.types import Role
from mcp_memory.shortterm.canvas.flowchart import clean
from mcp_memory.shortterm.canvas.tasks import content, is_task


@dataclass(frozen=True, slots=True)
class _Language:
    done: str
    """Said of a task: it is finished."""
    new: str
    """A task begins, whose name follows."""
    now: str
    """What comes next; a task only where the one before is done, or it shares nothing with it."""
    back: str
    """An earlier task, whose name follows."""
    earlier: str
    """That name, where it is none: the one before."""
    also: str
    """More of the same task."""
    hedged: str
    """A clause with this anywhere says that nothing is done yet."""
    thanks: str


_LANGUAGES = {
    "en": _Language(
        done=r"(?:(?:we|i|you)(?:'re| are|'m| am)|(?:that|this|it|everything|all of (?:that|this|it))(?:'?s| is"
        r"| looks)|"
        r"all|the task is|task|that(?:'?s| is) it[,:]?)(?: now| all)? (?:done|finished|complete(?:d)?|sorted"
        r"|good to go)\b"
        r"|(?:i(?:'m| am)|we(?:'re| are))? ?(?:done|finished) with\b|that (?:works|fixed it|did it|solved it)\b"
        r"|(?:great|perfect|nice),? (?:that works|it works|done)\b",
        new=r"(?:(?:a )?(?:new|next|another|different|separate|unrelated) (?:task|topic|question|job|issue|ticket"
        r"|project|"
        r"subject)\b|on another note\b|(?:let's |let us |we |i'll |i want to |please )?(?:now )?(?:move on"
        r"|moving on) (?:to|"
        r"with)\b|(?:let's |let us )?(?:switch|switching) (?:gears|topics?|tasks?|projects?)(?: to)?\b|(?:never mind"
        r"|forget|"
        r"drop|leave|park) (?:about )?(?:that|this|it)(?: for now)?\b(?: and| then)?)",
        now=r"(?:now|next|then|after that)\b,?(?: let's| let us| we(?:'ll| can| should)?| i(?:'d like to| want to)|"
        r" please| can you| could you)?|let's now\b|let us now\b",
        back=r"(?:let's |let us |we |i'll |please |can we |now )*(?:go |going |come |get )?back to\b(?! you\b)"
        r"|(?:let's |let us |please )*"
        r"(?:return to|resume|pick up)\b",
        earlier=r"(?:the |our |my )?(?:previous|earlier|last|other|first)(?: task| one| thing)?$"
        r"|what we were doing.*",
        also=r"also|and|but|wait|hmm|oh|one more|still|additionally|plus|besides|actually",
        hedged=r"\bnot\b|n't\b|\bif\b|\bonce\b|\bwhen\b|\buntil\b|\bbefore\b|\bafter\b|\balmost\b|\bnearly\b"
        r"|\bhalf\b|\bunless\b",
        thanks=r"thanks|thank you|thx|cheers|great|perfect|nice|cool|ok(?:ay)?|good|awesome|well done",
    ),
    "de": _Language(
        done=r"(?:das|es|alles|die aufgabe)(?: ist| wäre)?(?: jetzt| nun| damit)? (?:fertig|erledigt|geschafft"
        r"|abgeschlossen)\b"
        r"|(?:ich bin|wir sind)(?: jetzt)?(?: damit| mit .{1,60}?)? (?:fertig|durch)\b|fertig mit\b|das (?:klappt"
        r"|passt|läuft) (?:jetzt|so)\b",
        new=r"(?:eine )?(?:neue|nächste|andere|weitere) (?:aufgabe|frage|baustelle|sache)\b|anderes thema\b"
        r"|themenwechsel\b|"
        r"(?:lass uns |wir )?(?:weiter zu[mr]?|wechseln (?:wir )?zu[mr]?)\b|vergiss das\b",
        now=r"(?:jetzt|nun|als nächstes|danach|dann)\b(?: lass uns| machen wir| bitte| kannst du)?",
        back=r"(?:lass uns |wir |jetzt )*(?:zurück zu[mr]?|kehren wir zu[mr]? .* zurück|weiter mit)\b",
        earlier=r"(?:der |dem )?(?:vorherigen|letzten|anderen|ersten)(?: aufgabe| sache)?$",
        also=r"auch|und|aber|warte|noch|außerdem|moment|übrigens",
        hedged=r"\bnicht\b|\bnoch\b|\bwenn\b|\bsobald\b|\bbis\b|\bfast\b|\bbevor\b|\bfalls\b",
        thanks=r"danke|super|prima|toll|gut|perfekt|okay|klasse",
    ),
    "fr": _Language(
        done=r"(?:c'est|tout est|voilà,? c'est|la tâche est) (?:bon,? |maintenant )?(?:fini|terminée?|fait)\b"
        r"|(?:on a|nous avons|j'ai) (?:fini|terminé)\b",
        new=r"(?:une )?(?:nouvelle|autre|prochaine) (?:tâche|question)\b|autre sujet\b|passons à\b|oublie ça\b"
        r"|(?:un )?nouveau sujet\b",
        now=r"(?:maintenant|ensuite|après ça)\b",
        back=r"revenons (?:à|au|aux)\b|reprenons\b|retournons (?:à|au)\b",
        earlier=r"(?:la |à la )?(?:tâche )?précédente$",
        also=r"aussi|et|mais|attends|encore|en plus",
        hedged=r"\bpas\b|\bsi\b|\bquand\b|\bpresque\b|\bavant\b|\bune fois\b",
        thanks=r"merci|super|parfait|génial|bien|ok",
    ),
    "es": _Language(
        done=r"(?:ya )?(?:está|esto está|todo está|eso está|la tarea está) (?:todo )?(?:listo|terminad[oa]|hecho"
        r"|acabad[oa])\b|(?:ya )?(?:hemos|he) (?:terminado|acabado)\b",
        new=r"(?:una )?(?:nueva|otra|siguiente) (?:tarea|pregunta)\b|otro tema\b|cambi(?:ando|emos) de tema\b"
        r"|pas(?:emos|amos) a\b|olvida eso\b",
        now=r"(?:ahora|luego|después)\b(?: vamos a)?",
        back=r"volv(?:amos|iendo) a[l]?\b|retomemos\b|regresemos a[l]?\b",
        earlier=r"(?:la |lo )?(?:tarea )?anterior$",
        also=r"también|y|pero|espera|además|todavía",
        hedged=r"\bno\b|\bsi\b|\bcuando\b|\bcasi\b|\bantes\b|\bhasta\b",
        thanks=r"gracias|genial|perfecto|bien|vale|ok",
    ),
    "it": _Language(
        done=r"(?:è|è tutto|questo è|il compito è) (?:fatto|finito|completato|a posto)\b|(?:abbiamo|ho) finito\b",
        new=r"(?:un )?(?:nuovo|altro|prossimo) (?:compito|argomento)\b|(?:una )?(?:nuova|altra) (?:domanda|cosa)\b"
        r"|passiamo a[dl]?\w*\b",
        now=r"(?:adesso|ora|poi|dopo)\b",
        back=r"torn(?:iamo|ando) a[dl]?\w*\b|riprendiamo\b",
        earlier=r"(?:il |al )?(?:compito )?precedente$",
        also=r"anche|e|ma|aspetta|inoltre|ancora",
        hedged=r"\bnon\b|\bse\b|\bquando\b|\bquasi\b|\bprima\b",
        thanks=r"grazie|ottimo|perfetto|bene|ok",
    ),
    "pt": _Language(
        done=r"(?:já )?(?:está|isto está|isso está|tudo) (?:tudo )?(?:pronto|feito|terminad[oa]|concluíd[oa])\b"
        r"|(?:já )?(?:terminamos|terminei|acabamos|acabei)\b",
        new=r"(?:uma )?(?:nova|outra|próxima) (?:tarefa|pergunta)\b|outro assunto\b|mudando de assunto\b"
        r"|(?:vamos )?pass(?:emos|ar) (?:para|a)\b|esquece isso\b",
        now=r"(?:agora|depois|a seguir)\b(?: vamos)?",
        back=r"(?:vamos )?volt(?:emos|ar|ando) (?:a|à|ao|para)\b|retom(?:emos|ar)\b",
        earlier=r"(?:a |à )?(?:tarefa )?anterior$",
        also=r"também|e|mas|espera|além|ainda",
        hedged=r"\bnão\b|\bse\b|\bquando\b|\bquase\b|\bantes\b|\baté\b",
        thanks=r"obrigad[oa]|valeu|ótimo|perfeito|bom|ok",
    ),
    "ru": _Language(
        done=r"(?:всё|все|это|задача)(?: уже| теперь)? (?:готово|готова|сделано|сделана|закончено|закончена|решено"
        r"|решена)\b|(?:мы |я )?(?:закончили|закончил|закончила) с\b|готово\b",
        new=r"(?:новая|другая|следующая) (?:задача|тема)\b|(?:новый|другой) вопрос\b"
        r"|(?:давай(?:те)? )?пер(?:ейд[её]м|еходим) к\b|забудь об этом\b",
        now=r"(?:теперь|дальше|затем|потом)\b(?: давай(?:те)?)?",
        back=r"(?:давай(?:те)? )?(?:верн[её]мся|вернись) к\b",
        earlier=r"(?:предыдущей|прошлой)(?: задаче)?$",
        also=r"также|тоже|и|но|подожди|ещё|еще",
        hedged=r"\bне\b|\bесли\b|\bкогда\b|\bпочти\b|\bпока\b|\bдо того\b",
        thanks=r"спасибо|отлично|хорошо|супер|ладно",
    ),
    "zh": _Language(
        done=r"(?:这个|那个|这边|全部|任务|都)?(?:已经)?(?:做完|完成|搞定|弄好|结束)了",
        new=r"(?:新的?任务|下一个任务|另一个任务|换个话题|另外一个问题)[:：,，]?|(?:我们)?(?:现在)?(?:转到|切换到|换到)",
        now=r"(?:现在|接下来|然后|下面)(?:我们|请|来|帮我)?",
        back=r"(?:我们)?(?:回到|继续做|接着做)",
        earlier=r"(?:之前|上一个|刚才)的?(?:任务)?$",
        also=r"还有|也|但|等等|另外|而且",
        hedged=r"没|还没|如果|等|快|未",
        thanks=r"谢谢|多谢|很好|太好了|好的",
    ),
    "ja": _Language(
        done=r"(?:これ|それ|全部|すべて|タスク)?(?:は|で)?(?:完了|終わり|終了|できた|解決)(?:しました|した|です|ました)?",
        new=r"(?:新しいタスク|次のタスク|別の(?:タスク|話題|質問|件))[:：、,はで]?",
        now=r"(?:では|じゃあ|次に|次は|今度は|それでは)、?",
        back=r"(?P<ja>.{1,40})に戻(?:ろう|りましょう|って|る)",
        earlier=r"(?:前|さっき|先ほど)の(?:タスク|件|話)?$",
        also=r"また|あと|それと|でも|待って|ちなみに",
        hedged=r"ない|まだ|たら|もし|ません|まで",
        thanks=r"ありがとう|どうも|いいね|了解",
    ),
    "ko": _Language(
        done=r"(?:이건|그건|다|모두|작업)?\s?(?:끝났|완료(?:했|됐|되었)|다 했|해결(?:했|됐))",
        new=r"(?:새(?:로운)? 작업|다음 작업|다른 (?:작업|주제|질문))[:,은는]?",
        now=r"(?:이제|다음으로|그다음)",
        back=r"다시 (?P<ko>.{1,40})(?:으로|로) 돌아",
        earlier=r"(?:이전|아까|앞의?) ?(?:작업|것)?$",
        also=r"또|그리고|하지만|잠깐|참",
        hedged=r"안 |않|아직|만약|면 |전에",
        thanks=r"고마워|감사|좋아|네",
    ),
}


def _any(field: str, *, whole: bool = False) -> re.Pattern[str]:
    joined = "|".join(f"(?:{getattr(language, field)})" for language in _LANGUAGES.values())
    return re.compile(rf"(?:{joined})$" if whole else joined, re.IGNORECASE)


DONE, NEW, NOW, BACK = _any("done"), _any("new"), _any("now"), _any("back")
EARLIER, HEDGED = _any("earlier"), _any("hedged")
ALSO = re.compile(rf"(?:{_any('also').pattern})(?!\w)", re.IGNORECASE)
THANKS = re.compile(rf"(?:{_any('thanks').pattern})(?!\w)", re.IGNORECASE)
LEAD = re.compile(
    r"(?:(?:ok(?:ay)?|all ?right|right|great|perfect|good|nice|cool|so|well|and|yes|yeah|thanks|thank you|super|gut"
    r"|danke|"
    r"also gut|bon|bien|vale|bueno|bene|ótimo|хорошо|отлично|好的?|谢谢|はい|네)(?!\w)[\s,.!:;、，。！–—-]*)+",
    re.IGNORECASE,
)
"""What a clause may begin with before it says anything."""
BREAKS = re.compile(
    r"[.!;。！；\n]+|(?<=[?？])|\s[–—-]+\s|[,，、]\s*(?=(?:and )?(?:now|next|then|let's|jetzt|nun|als nächstes"
    r"|maintenant|ahora|adesso|agora|теперь|现在|接下来)(?!\w))"
    r"|\band (?=now\b|then\b|let's\b)|\bund (?=jetzt\b|nun\b|dann\b)",
    re.IGNORECASE,
)
"""Where one clause ends and the next begins."""


LISTENED = 600
"""Characters of a message that are listened to."""
GOAL_WORDS = 120

_UNHEARD = re.compile(
    r"```.*?(?:```|$)|`[^`\n]*`|^\s*>.*$|\"[^\"\n]{0,200}\"|“[^”\n]{0,200}”|«[^»\n]{0,200}»", re.DOTALL | re.MULTILINE
)
_ASKS = re.compile(r"[?？]\s*$")
_AT_THE_END = re.compile(r"[\s,]+(?:please|now|again|thanks|bitte|svp|por favor)$", re.IGNORECASE)
_HESITATES = re.compile(
    r"(?:(?:wait|hey|hm+|oh|actually|sorry|moment|warte|ach|attends|espera|aspetta|подожди|等等|待って|잠깐)(?!\w)[\s,.!…–—-]*)+",
    re.IGNORECASE,
)
_TOGETHER = re.compile(r"(?:now|next),? (?:let's|let us|we'll|can you|could you|please)(?!\w)", re.IGNORECASE)
_BEGINS = re.compile(
    r"(?:start |begin )?(?:to |by )?(?:add|book|build|create|design|draft|find|implement|migrate|organi[sz]e|plan"
    r"|prepare|research|set up|translate|write)(?!\w)",
    re.IGNORECASE,
)
_TOLD = re.compile(
    r"(?:i|it|we|you|he|she|they|that|this|there|ich|es|wir|das|je|il|elle|yo|io|eu|я|он|она)(?!\w)", re.IGNORECASE
)
_PART = re.compile(
    r"(?:the |our )?(?:next|following|others?|another|rest|(?:(?:first|second|third|fourth|last|final) )?"
    r"(?:step|phase|part|point|item|file|section|stage|chapter|test|one|page|thing)s?)(?!\w)",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"(?:please|let's|let us|can you|could you|would you|we(?:'ll| will| can| should)|i(?:'d like| want) (?:you )?to|to"
    r"|the|bitte|kannst du|lass uns|s'il te plaît|por favor|per favore|请|帮我|пожалуйста)(?!\w)[\s,:;–—-]*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryVerdict:
    """`new`: the goal of a task that begins. `back`: the words of an earlier one, "" for the one before.

    Both None: the task goes on. `done`: the task so far was said to be finished.
    """

    new: str | None = None
    back: str | None = None
    done: bool = False


GOES_ON = BoundaryVerdict()


def boundary(said: Sequence[tuple[Role, str]], *, about: Collection[str]) -> BoundaryVerdict:
    """Return what was said of the task, oldest message first; `about` are the content terms of the task so far."""
    done_before, verdict = False, GOES_ON
    for role, text in said:
        done_here = False
        waiting = False  # for the name of a task that was announced
        for clause in _clauses(text):
            asks = bool(_ASKS.search(clause))
            if _says_done(clause, asks) and (role == "user" or " with " not in clause):
                done_here = True
                continue
            if role != "user":
                continue
            verdict, waiting = _heard(
                clause, verdict, waiting=waiting, done_here=done_here, done_before=done_before, about=about
            )
        done_before = done_before or done_here
    if verdict.new is None and verdict.back is None:
        return BoundaryVerdict(done=done_before)
    return BoundaryVerdict(new=verdict.new, back=verdict.back, done=done_before)


def _heard(
    clause: str, verdict: BoundaryVerdict, *, waiting: bool, done_here: bool, done_before: bool, about: Collection[str]
) -> tuple[BoundaryVerdict, bool]:
    """What one clause of the user's adds, and whether the next has to name a task."""
    firm = _HESITATES.sub("", clause, count=1)
    if found := BACK.match(firm):
        named = next((each for each in found.groups() if each), "") or firm[found.end() :]
        words = _bare(named)
        return BoundaryVerdict(back="" if EARLIER.match(words) or not words else words), False
    if found := NEW.match(firm):
        rest = firm[found.end() :]
        return (BoundaryVerdict(new=_goal(rest)), False) if _goal(rest) else (verdict, not _bare(rest))
    goal = _goal(clause)
    if waiting and goal:
        return BoundaryVerdict(new=goal), False
    if found := NOW.match(clause):
        goal = _goal(clause[found.end() :])
        strange = bool(_TOGETHER.match(clause) and _BEGINS.match(goal)) and _strange(goal, about)
        if goal and (done_here or done_before or strange):
            return BoundaryVerdict(new=goal), False
        return verdict, False
    fresh = done_before and not done_here and verdict == GOES_ON and not ALSO.match(clause) and not THANKS.match(clause)
    if fresh and goal and _strange(goal, about):
        return BoundaryVerdict(new=goal), False
    return verdict, False


def _strange(goal: str, about: Collection[str]) -> bool:
    """Whether it has words of its own and none of the task's."""
    told = content(goal)
    return len(told) >= 2 and not told & frozenset(about)


def _says_done(clause: str, asks: bool) -> bool:
    return bool(DONE.match(clause)) and not asks and not HEDGED.search(clause)


def _clauses(text: str) -> Iterator[str]:
    heard = _UNHEARD.sub(" ", text[: 4 * LISTENED])[:LISTENED]
    for part in BREAKS.split(heard):
        clause = part.strip()
        if clause:
            bare = (
                LEAD.sub("", clause, count=1) if (found := LEAD.match(clause)) and found.end() < len(clause) else clause
            )
            yield bare.replace("’", "'")


def _bare(words: str) -> str:
    words = _AT_THE_END.sub("", words.strip(" \t,:;.!?–—-：，。、"))
    while (found := _POLITE.match(words)) and found.end() < len(words):
        words = words[found.end() :]
    return words.strip(" \t,:;.!?–—-：，。、")


def _goal(words: str) -> str:
    """The name of a task, if the words make one: not what somebody tells, and not the next part of the same."""
    goal = clean(_bare(words), GOAL_WORDS)
    named = sum(char.isalpha() for char in goal) >= 2
    return goal if named and not _TOLD.match(goal) and not _PART.match(goal) and is_task(goal) else ""
