"""The patterns of standing rules in a language, read from its file (`patterns/en.txt`).

A file has blocks. Each begins at the margin; its lines are indented by four columns and joined:

    define DO                               words that patterns name as {DO}
        (?:add|address
        |answer)\b
    narrative                               words of a clause that tells a story
        \b(?:i|he|she)\b
    instruction 0.9 before: never ever      kind, strength, guard, and the words of which a sentence needs one
        \bnever {DO}

Tells whether a sentence is no order for good of who says it: reported, imagined, told, for once, or taken back.

"My boss says never …", "Anna wants her assistant to always …", "if I were rich I would always …", "write a story in
which …", "this time in French", "forget what I said about …". Known by words and their order, in the languages of the
rules; a person by their own name is not told from a thing.

Standing rules that a user states in passing: "no ORM, ever", "siezen, nie duzen", "I'm allergic to nuts".

`standing_rules` finds the sentences of a turn that instruct for good (kind `instruction`) or state a lasting limit of
a person (kind `constraint`), by the grammar of sixteen languages and without a model. It is meant to be precise: a
rule found here is put in front of an agent. Stories ("I have never been there"), questions, orders of the moment
("don't commit that yet"), quotations and code are not rules.

Works on one sentence at a time. It does not know what a rule is about, whether it still holds, or whether "no photos"
is meant for today or for good: `strength` says how surely the wording is that of a lasting rule. Rules that are stated
as plain facts ("table names are singular") are found only under a heading such as "rules:". Pure text; never raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Literal, cast

from mcp_memory.language.quoted import FILL, own_part

RuleKind = Literal["instruction", "constraint"]
Guard = Literal["none", "before", "clause"]


@dataclass(frozen=True)
class RulePattern:
    """One way to say a rule in one language.

    `words`: the pattern is tried only on sentences with one of these words (lower case); none: on every sentence.
    `strength`: how surely a match is a lasting rule, in (0, 1].
    `source`: a regular expression over a sentence in lower case, its quotations masked with `quoted.FILL`.
    `guard`: which part of the clause around the match has to be free of the grammar's `narrative` words: nothing, the
    part up to the end of the match, or the clause.
    """

    kind: RuleKind
    strength: float
    words: str
    source: str
    guard: Guard

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source)


@dataclass(frozen=True)
class Grammar:
    """The patterns of a language. `narrative`: words of a clause that tells a story (subjects, auxiliaries, past)."""

    narrative: str
    patterns: Sequence[RulePattern]

    @cached_property
    def tells(self) -> re.Pattern[str]:
        return re.compile(self.narrative)


_DEFINED = re.compile(r"\{([A-Z_]+)\}")


@cache
def grammar(language: str) -> Grammar:
    """Read the grammar of a language, named by its ISO 639-1 code."""
    defined: dict[str, str] = {}
    patterns: list[RulePattern] = []
    narrative = ""
    for head, source in _blocks(
        resources.files(__package__).joinpath("data", "standing_rules", f"{language}.txt").read_text("utf-8")
    ):
        source = _DEFINED.sub(lambda name: defined[name[1]], source)
        if head.startswith("define "):
            defined[head.removeprefix("define ")] = source
        elif head == "narrative":
            narrative = source
        else:
            how, _, words = head.partition(":")
            kind, strength, guard = how.split()
            patterns.append(RulePattern(cast("RuleKind", kind), float(strength), words, source, cast("Guard", guard)))
    return Grammar(narrative, patterns)


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield each line that begins at the margin, with the indented lines below it joined."""
    head, parts = "", list[str]()
    for line in text.splitlines():
        if line.startswith("    "):
            parts.append(line[4:])
        elif line and not line.startswith("#"):
            if head:
                yield head, "".join(parts)
            head, parts = line, []
    yield head, "".join(parts)


_PEOPLE = r"""
colleagues? co-?workers? boss(?:es)? manager supervisor friends? neighbou?rs? mother mum mom father dad
parents brothers? sisters? wife husband partner girlfriend boyfriend son daughter kids? children uncle aunt
cousins? grandmother grandma grandfather grandpa teacher professor doctor dentist lawyer landlord landlady
suppliers? flatmate roommate trainer coach ex guy woman author predecessor kolleg\w+ chef\w* vorgesetzte\w*
freund\w* nachbar\w* mutter mama vater papa eltern bruder schwester frau mann partner\w* sohn tochter kinder
onkel tante cousine? oma opa lehrer\w* professor\w* arzt ärztin anwalt anwältin vermieter\w* trainer\w* leute
vorgänger\w* collègues? patronn?e? amie?s? voisine?s? mère père frère sœur femme mari fils fille oncle
cousine?s? professeur médecin avocate? propriétaire gens compañer[oa]s? jef[ea]s? amig[oa]s? vecin[oa]s? madre
padre padres herman[oa]s? mujer marido hij[oa]s? tí[oa] prim[oa]s? profesora? médic[oa] abogad[oa] caser[oa]
gente collegh?[aei] capo amic[oaih]+ vicin[oaei] genitori fratello sorella moglie marito figli[oae]? zi[oa]
cugin[oaei] professore professoressa medico avvocato padrone colegas? chef[ea]s? vizinh[oa]s? mãe pai pais
irmão irmã esposa mulher filh[oa]s? ti[oa] advogad[oa] senhori[oa] pessoal collega'?s? baas vriend\w* buurman
buurvrouw buren moeder vader ouders broer zus vrouw zoon dochter oom leraar arts advocaat huisbaas коллег\w+
начальни\w+ шеф\w* друг подруга друзья сосед\w* мать мама отец папа брат сестра жена муж сын дочь дядя тётя
учитель\w* врач юрист люди бабушка дедушка koleg\w+ koleżanka szef\w* przyjaci\w+ sąsiad\w* matka ojciec tata
brat siostra żona mąż syn córka nauczyciel\w* lekarz lekarka ludzie kollega\w* kollegor vän\w* granne\w* mor
mamma far pappa bror syster fru dotter lärare läkare
"""
_DENSE_PEOPLE = (
    "(?:他|她)们?|同事|老板|上司|经理|领导|朋友|邻居|妈妈|爸爸|母亲|父亲|父母|哥哥|弟弟|姐姐|妹妹|妻子|老婆|丈夫|老公|儿子|女儿"
    "|老师|医生|律师|房东|客户|室友|同学|有人|大家|别人"
)
_JAPANESE_PEOPLE = (
    "彼女?|彼ら|同僚|上司|部長|社長|友達|友人|隣人|母|父|両親|兄|弟|姉|妹|妻|夫|息子|娘|先生|医者|弁護士|大家"
)
_KOREAN_PEOPLE = (
    "그녀?|그들|동료|상사|사장님?|부장님?|친구|이웃|어머니|엄마|아버지|아빠|부모님|형|누나|언니|오빠|동생|아내|남편|아들|딸"
    "|선생님|의사|변호사|집주인|고객|손님"
)
_OWNED = (
    r"my|our|his|her|their|the|an?|some|most|many|mein\w*|unser\w*|sein\w*|ihr\w*|der|die|ein\w*|mon|ma|mes|notre|nos"
    r"|son|sa|ses|leurs?|le|la|les|une?|mis?|nuestr[oa]s?|sus?|el|los|las|una?|mi[oae]|miei|nostr[oaie]|su[oae]|suoi"
    r"|il|i"
    r"|gli|lo|meus?|minhas?|noss[oa]s?|seus?|suas?|os?|as?|uma?|mijn|onze?|zijn|haar|hun|de|een|мо[йяи]|наш\w*|его|её"
    r"|их|один"
    r"|одна|mój|moja|moi|moje|nasz\w*|jego|jej|ich|min|mitt|mina|vår\w*|hans|hennes|mit"
)
_THEY = (
    r"he|she|they|everyone|everybody|nobody|somebody|someone|people|er|man|jemand|il|elle|on|ils|elles|él|ella|ellos"
    r"|ellas"
    r"|lui|lei|loro|ele|ela|eles|elas|hij|zij|ze|он|она|они|on|ona|oni|han|hon|hun"
)
_ALWAYS = (
    r"always|never|only|usually|immer|nie|niemals|stets|toujours|jamais|siempre|nunca|jamás|sempre|mai|altijd|nooit"
    r"|всегда"
    r"|никогда|zawsze|nigdy|alltid|aldrig|altid"
)
_OUGHT = (
    r"must|should|shall|has|have|needs?|is|are|gets?|muss|müssen|soll\w*|darf|dürfen|ist|sind|wird|werden|doit|doivent"
    r"|est|sont"
    r"|debe[n]?|es|son|deve|devono|devem|è|é|sono|são|moet\w*|mag|wordt|worden|долж\w+|musi|muszą|må|ska|skal"
)
_ME = (
    r"i|we|you|i've|i'd|we've|as|like|been|be|is|are|always|never|often|also|just|already|once|have|had|ich|wir|du|wie"
    r"|schon"
    r"|immer|je|nous|tu|vous|yo|ya|como|eu|já|io|già|come|ik|wij|je|al|я|мы|уже|как|ja|już|jak|jag|jeg|se|si|que"
)
_SAYS = (
    r"says|said|claims|claimed|insists|insisted|reckons|swears|swore|believes|thinks|recommends|advises|advised|argues"
    r"|tells (?:me|us|people|everyone)|told (?:me|us|him|her|them)|keeps saying"
    r"|sagt|sagte|meint|meinte|behauptet|behauptete|findet|glaubt|rät|riet|dit|disait|pense|prétend|affirme|conseille"
    r"|croit"
    r"|dice|dicen|dijo|dijeron|cree|opina|sostiene|recomienda|aconseja|dicono|disse|pensa|crede|consiglia|raccomanda"
    r"|diz"
    r"|dizem|acha|acredita|afirma|recomenda|zegt|zei|vindt|denkt|beweert|говорит|говорят|сказала?|считает|утверждает"
    r"|советует|думает|mówi|mówią|powiedziała?|uważa|twierdzi|radzi|säger|tycker|påstår|siger|sagde|synes|sier|sa"
)
_SAID = (
    r"\b(?:was|were|been) (?:told|taught|advised)\b|\b(?:they|people|some|many|experts|doctors) (?:say|claim|think"
    r"|recommend)\b"
    r"|\bi(?:'ve| have)? (?:read|heard|learn(?:ed|t)) (?:that|somewhere|once)\b|\b(?:gelesen|gehört), dass\b"
    r"|\bes heißt\b"
    r"|\bj'ai (?:lu|entendu)\b|\bon dit\b|\bhe (?:leído|oído)\b|\bse dice que\b|\bho (?:letto|sentito)\b"
    r"|\bsi dice che\b"
    r"|\bouvi dizer\b|听说|聽說|と聞いた|と読んだ"
    r"|\bhat(?:te)?\b[^.!?]*\b(?:gesagt|gemeint|geschrieben|geraten|empfohlen)\b|\b(?:m'|nous )?(?:a|ont) (?:dit|écrit"
    r"|conseillé)\b"
    r"|\b(?:ha|han) (?:dicho|escrito|aconsejado)\b|\b(?:ha|hanno) (?:detto|scritto|consigliato)\b"
    r"|\bheeft\b[^.!?]*\b(?:gezegd|geschreven|aangeraden)\b|\bhar (?:sagt|sagt|skrivit|skrevet)\b"
    r"|\b(?:diyor|dedi|söyledi|söylüyor|düşünüyor|demiş)(?:lar)?\b"
    rf"|(?:{_DENSE_PEOPLE})[^，。！？]{{0,6}}(?:说|說|觉得|认为|建议|告诉我)"
    r"|(?:と|って)(?:言った|言っている|言ってた|言っていた|言われた|言います|主張)"
    r"|(?:다고|라고)\s?(?:말했|말한|했|하셨|한다|합니다|해요|하더)"
)
_IMAGINED = (
    r"\bif (?:i|we|he|she|they) (?:were|was|had|could|lived|owned|won)\b|\bwenn (?:ich|wir)\b[^.!?]*\b(?:wäre|hätte"
    r"|könnte|würde)"
    r"|\b(?:wäre|hätte) (?:ich|wir)\b|\bsi (?:j'étais|j'avais|je pouvais|j'habitais|nous étions)\b"
    r"|\bsi (?:yo |nosotros )?(?:fuera|fuese|tuviera|tuviese|pudiera|viviera)\b|\bse (?:io )?(?:fossi|avessi|potessi"
    r"|vivessi)\b"
    r"|\bse (?:eu )?(?:fosse|tivesse|pudesse|morasse)\b|\bals ik\b[^.!?]*\b(?:was|had|kon|zou)\b|\bесли бы\b"
    r"|\bgdyby(?:m|śmy)?\b"
    r"|\b(?:olsaydım|olsam)\b|\bom jag (?:vore|var|hade)\b|\bhvis jeg (?:var|havde|hadde)\b"
    r"|如果我(?:是|有|能|很)|要是我|假如"
    r"|もし(?:私|僕|俺)|(?:만약|내가|제가)[^.!?]{0,20}(?:라면|다면)"
)
_TAKEN_BACK = (
    r"\b(?:don't|do not|didn't|wouldn't|never said (?:that )?i) (?:really )?(?:want|need|expect"
    r"|ask)\b[^.!?,]* (?:always|every time)\b"
    r"|\b(?:don't have to|do not have to|needn't|need not|no need to|not necessary to|not) always\b"
    r"|\b(?:don't|do not) (?:always|need to|have to)\b"
    r"|\bnicht (?:immer|jedes mal)\b|\bpas (?:toujours|besoin|à chaque fois)\b"
    r"|\bno (?:siempre|hace falta|es necesario|tienes que|tiene que|necesitas|quiero que siempre)\b"
    r"|\bnon (?:sempre|serve|occorre|devi|è necessario|c'è bisogno)\b|\bnão (?:é preciso|precisa|é necessário"
    r"|tem que) \w+ sempre"
    r"|\bnem sempre\b|\bniet (?:altijd|elke keer)\b|\bне (?:всегда|обязательно|нужно|надо)\b|\bnie (?:zawsze|musisz"
    r"|trzeba)\b"
    r"|\binte alltid\b|\bikke altid\b|\bikke alltid\b"
    r"|不用总|不必|不需要总|不一定要|必ずしも|必要はない|必要はありません|필요는? 없"
)

_OF_A_SOURCE = (
    r"^\W*(?:and |but |und |et |y )?(?:according to|laut|gemäß|d'après|selon|según|secondo|segundo|de acordo com"
    r"|volgens|według|zgodnie z|согласно|enligt|ifølge) (?!(?:me|us|mir|uns|moi|nous|mí|mim|mij|ons|mnie|mig|mej)\b)"
    r"|\b(?:steht|stand)\b[^.!?]{0,40}, dass\b|^\W*(?:根据|根據|据说)|によると|によれば|에 따르면"
    r"|(?:يقول|تقول|قال|قالت)\s\S+\s(?:إن|أن)"
)
_OF_OTHERS = (
    rf"\b(?!(?:{_ME})\b)[\w'-]+ (?:wants?|wanted|expects?|expected|demands?|demanded|requires?|required|orders?"
    r"|ordered|commands?|commanded) (?!(?:you|me|us|it|them)\b)(?:[\w'-]+ ){1,3}to\b"
    rf"|\b(?!(?:{_ME})\b)[\w'-]+ (?:demands|demanded|commands|commanded|orders|ordered)(?: that\b|:)"
    rf"|\b(?!(?:{_ME})\b)[\w'-]+ (?:has|have|had) (?:the |an? |its |their )?(?:instructions?|orders?|commands?) to\b"
    r"|\b(?:is|are|gets?|got) (?:told|instructed|programmed)\b|\bused to (?:say|tell|insist|claim)\b"
    rf"|\b(?!(?:{_ME})\b)[\w'-]+ (?:texted|wrote|emailed|messaged|shouted|yelled) (?:to )?(?:me|us|him|her|them)\b"
    r"|\b(?!(?:today|here|it|that|what|there|let|team|house|company|firm|project)'s)[\w-]+'s (?:rule|principle|motto)"
    r" (?:is|was)\b"
)
_SUPPOSED = (
    r"^\W*(?:suppose|supposing|imagine|hypothetically|let's (?:play|pretend|say|imagine)|stell dir vor|angenommen"
    r"|imagina|supongamos|supón|supposons|immagina|supponiamo|suponha|假设|想象|假裝)\b"
    r"|\bif i (?:told|asked|wanted|said|ordered)\b|\bsi (?:te|le) (?:dijera|pidiera)\b"
    r"|\bsi je te (?:disais|demandais)\b"
    r"|\bwenn ich dir (?:sagte|sagen würde)\b|如果我(?:让|叫|要|说)|要是我(?:让|叫|要|说)|と言ったら|라고 하면"
    r"|\b(?:maybe|perhaps|some ?day|one day)\b[^.!?]*\bi(?:'ll| will| might| may)\b|\bbut not (?:now|yet|today)\b"
    r"|\b(?:wonder(?:ing|ed)?|thinking|thought|not sure|unsure|don't know|undecided) (?:about )?(?:whether|if)\b"
    r"|\b(?:vielleicht|irgendwann) (?:will|möchte|werde) ich\b|\b(?:überlege|frage mich), ob\b"
    r"|\bje me demande si\b|\bme pregunto si\b|\bmi chiedo se\b"
)
_FICTION = (
    r"^\W*(?:please )?(?:write|tell|make up|invent|draft|compose|continue) (?:me |us )?(?:an?|the) (?:\w+ ){0,2}"
    r"(?:story|tale|poem|scene|dialogue|novel|fable|sketch|song|joke)\b[^.!?]*\b(?:in which|where|about|who|whose)\b"
    r"|^\W*(?:schreib\w*|erzähl\w*) (?:mir |uns )?eine?n? (?:\w+ )?(?:geschichte|gedicht|märchen|szene)\b"
    r"|^\W*(?:écris|raconte)(?:-moi)? une? (?:histoire|conte|poème|scène)\b"
    r"|^\W*(?:escribe|cuenta|escríbeme|cuéntame) una? (?:historia|cuento|poema|escena)\b"
    r"|写(?:一?[个篇首])?(?:故事|小说|诗)"
)
_ONCE = (
    r"\b(?:this (?:time|once)|just (?:this|that) once|this one|(?:just|only) for (?:now|today|once|this|that)|for once"
    r"|for (?:this|that) (?:e-?mail|mail|message|letter|answer|reply|question|report|one|time|file|text|task))\b"
    r"|\b(?:don't|do not)\b[^.!?]*\byet\W*$"
    r"|\b(?:diesmal|dieses mal|ausnahmsweise|nur (?:heute|jetzt|dieses eine mal|für diese[nsmr]?))\b"
    r"|\b(?:cette fois(?:-ci)?|pour une fois|juste pour (?:cette|ce|aujourd'hui))\b"
    r"|\b(?:(?:por )?esta vez|s[oó]lo por hoy)\b|\b(?:questa volta|solo per oggi|per una volta)\b"
    r"|\b(?:desta vez|só hoje|só desta)\b|\b(?:deze keer|dit keer|alleen vandaag)\b|\btym razem\b"
    r"|\b(?:в|на) этот раз\b|\bbu (?:sefer|seferlik|kez)\b|\b(?:den här gången|denne gang(?:en)?)\b"
    r"|[这這]一?次|今回(?:だけ|は)|今日だけ|이번(?:에는|에만|만)|هذه المرة"
)
_HENCEFORTH = (
    r"\b(?:from now on|in (?:the )?future|ab jetzt|ab sofort|künftig|in zukunft|dorénavant|désormais|à l'avenir"
    r"|a partir de (?:ahora|agora)|d'ora in poi|voortaan|od teraz|отныне|впредь|bundan sonra|hädanefter|fremover)\b"
    r"|以后|以後|今后|今後|これから|앞으로"
)
"""What is for good, even where the sentence tells of this time too."""
_WITHDRAWN = (
    r"\b(?:forget|ignore|scratch|drop|never mind|disregard) (?:what|that|everything|all) i(?:'ve)? (?:said|told|asked"
    r"|wrote)\b|\bi no longer (?:want|need)\b|\bvergiss,? was ich\b|\boublie ce que j'ai\b"
    r"|\bolvida lo que (?:te )?dije\b|\bdimentica quello che ho\b|\besque[cç][ae] o que (?:eu )?disse\b"
    r"|\bvergeet wat ik\b|\bзабудь,? что я\b|\bzapomnij,? co\b|忘了我说的|别管我说的"
)


@cache
def people() -> re.Pattern[str]:
    """Return a pattern of "my sister", "mein Chef": people by what they are to the speaker, in lower case."""
    return re.compile(rf"\b(?:(?:{_OWNED}) )+(?:[\w'-]+ )?({'|'.join(_PEOPLE.split())})\b")


@cache
def _patterns() -> re.Pattern[str]:
    somebody = rf"(?:{_THEY}|{people().pattern})"
    habits = (
        rf"^\W*(?:(?:and|but|so|well|und|aber|et|mais|y|pero|e|ma|mas|en|maar|и|а|но|a|ale),? )?{somebody}"
        rf"(?: (?:ne|n'\w+|non|nu|almost|nearly))?(?: (?!(?:{_OUGHT})\b)[\w'-]+){{0,3}}? (?:{_ALWAYS})\b"
        rf"|^\W*(?:我们?的?)?(?:{_DENSE_PEOPLE})(?:也|都|每次)?(?:总是|总|从不|从来不|一直|永远不?|必须)"
        rf"|^\W*(?:私の|うちの)?(?:{_JAPANESE_PEOPLE})(?:は|が)[^。]*(?:いつも|必ず|決して|絶対)[^。]*(?:ます|ません"
        rf"|る|ない)\W*$"
        rf"|^\W*(?:제|내|저희|우리)?\s?(?:{_KOREAN_PEOPLE})(?:은|는|이|가)?\s[^.]*(?:항상|늘|언제나|절대)[^.]*다\W*$"
    )
    often = "always|often|also|just|already|once|immer|siempre|sempre|toujours"
    says = rf"\b(?!(?:{_ME})\b)[\w'-]+(?: (?:{often}))* (?:{_SAYS})\b"
    reported = (habits, says, _SAID, _OF_A_SOURCE, _OF_OTHERS)
    return re.compile("|".join((*reported, _IMAGINED, _SUPPOSED, _FICTION, _TAKEN_BACK, _WITHDRAWN)))


@cache
def _once() -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(_ONCE), re.compile(_HENCEFORTH)


def is_reported(sentence: str) -> bool:
    """Tell whether a sentence, in lower case, is no order for good: what others do or say, what would be, for once."""
    plain = sentence.replace("’", "'")
    once, henceforth = _once()
    return _patterns().search(plain) is not None or (
        once.search(plain) is not None and henceforth.search(plain) is None
    )


READ = 4_000
"""Characters of a text that are read; what follows is a document more often than words of a person."""

_LONG = 1_200  # characters from which a text is likely to be pasted, so that only clear wording counts
_SURE = 0.6
_HEADING, _UNDER_HEADING = 0.7, 0.55
_LISTED = 5  # sentences under a heading


@dataclass(frozen=True, slots=True)
class Rule:
    """A sentence that states a standing rule: `text[start:end]`, with its `strength` in (0, 1]."""

    start: int
    end: int
    strength: float
    kind: RuleKind


def standing_rules(text: str) -> list[Rule]:
    """Return the standing rules that a user's turn states, in the order of the text; at most one for each sentence."""
    rules: list[Rule] = []
    listed = 0  # sentences that may still belong under a heading such as "rules:"
    reached = 0  # where the sentence before ends, without white space
    masked = _masked(text[:READ])
    least = 0.0 if len(text) <= _LONG else _SURE
    for start, end in sentences(masked):
        sentence = masked[start:end]
        inner = start + len(sentence) - len(sentence.lstrip())
        new_paragraph = "\n\n" in masked[reached:inner] and listed < _LISTED  # a list may begin below its heading
        listed = 0 if new_paragraph else listed - 1
        reached = start + len(sentence.rstrip())
        if is_question(sentence):
            continue
        rule = _rule_of(sentence)
        if rule and rule[0] == "instruction" and is_reported(sentence):
            rule = None
        if _HEADINGS.search(sentence):
            listed = _LISTED
            rule = max(rule or ("instruction", _HEADING), ("instruction", _HEADING), key=lambda one: one[1])
        elif listed > 0 and rule is None and len(sentence) > _SHORTEST:
            rule = ("instruction", _UNDER_HEADING)
        if rule and rule[1] >= least:
            rules.append(Rule(inner, reached, rule[1], rule[0]))
    return rules


# --- text to sentences ------------------------------------------------------------------------------

_SHORTEST = 8  # characters of a sentence under a heading
_SPOKEN_BY_OTHERS = re.compile(
    r"`[^`\n]{1,200}`|https?://\S+"
    r"|\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|„[^“”\n]{1,300}[“”]|«[^»\n]{1,300}»|»[^«\n]{1,300}«"
    r"|「[^」\n]{1,300}」|『[^』\n]{1,300}』",
    re.DOTALL | re.MULTILINE,
)
_ENDING = re.compile(r"[.!?…]+[)\]’'*_]*(?=\s|$)|[。！？]+|\n+|;\s")
_ABBREVIATED = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|z\.b|d\.h|u\.a|etc|vs|dr|mr|mrs|ms|st|no|nr|ca|bzw|p\.ej|sr|sra|prof|approx"
    r"|\d{1,2}|\w)\.$"
)


def _masked(text: str) -> str:
    """Return a text in lower case and of the same length, with quotations and code made unreadable."""
    own = own_part(text)
    lower = own.lower()
    if len(lower) != len(own):  # a few capital letters become two
        lower = "".join(one if len(one := c.lower()) == 1 else c for c in own)
    lower = lower.replace("’", "'")
    return _SPOKEN_BY_OTHERS.sub(lambda quote: FILL * len(quote[0]), lower)


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of sentences and of lines."""
    start = 0
    for ending in _ENDING.finditer(text):
        if ending[0] == "." and _ABBREVIATED.search(text[max(start, ending.end() - 12) : ending.end()]):
            continue
        if text[start : ending.end()].strip():
            yield start, ending.end()
        start = ending.end()
    if text[start:].strip():
        yield start, len(text)


_QUESTION = re.compile(
    r"[?？]\W*$|(?:吗|嗎|呢|か)[。\s]*$"
    r"|^\W*(?:can|could|would|will|do|does|did|is|are|what|how|why|when (?:is|are|do|did|will)|where|who"
    r"|which|should) (?:i|you|we|it|that|the)\b.*[^.]$"
)
_TAG = re.compile(
    r",\s*(?:ok|okay|right|yes|please|got it|deal|agreed|ja|klar|gut|oder|verstanden|bitte|oké|goed|d'accord"
    r"|vale|sí|de acuerdo|va bene|está bem"
    r"|tá|ладно|хорошо|好吗|好嗎|可以吗)\s*[?？]\W*$"
)


def is_question(sentence: str) -> bool:
    """Tell whether a sentence, in lower case, only asks: "no emoji, ok?" does not."""
    return _QUESTION.search(sentence) is not None and _TAG.search(sentence) is None


# --- sentences to rules -----------------------------------------------------------------------------

_HEADINGS = re.compile(
    r"^\W*(?:(?!i\b|i'm|we're|is\b|are\b|here)[\w'’-]+ ){0,4}?(?:(?<!day )rules?|conventions?|guidelines"
    r"|(?:'s|my|her|his|their|our) wishes"
    r"|(?:\w+)?regeln?|vorgaben|konventionen?|wünsche|règles?|consignes|reglas?|normas|regole?|regras?"
    r"|regels?|afspraken"
    r"|правил[ао]|требования|zasady|regler|kurallar)\b(?:,? (?:yes|ja|sí|oui|sì|да)\s*[.!]|[^.:?!¤]{0,50}:(?!\d))"
    r"|^.{0,12}(?:规则|規則|要求|约定|ルール|決まり|규칙)[^。？！:：]{0,20}[:：]"
)
_CLAUSE = re.compile(
    r"[,;:()–—、，；：]| - |\b(?:before|unless|until|when|if|because|since|bevor|wenn|weil|damit|sobald|omdat"
    r"|voordat|als er|cuando|porque|parce que"
    r"|quando|perché|потому)\b"
)
_WORD = re.compile(r"\w+")
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_KANA = re.compile("[\u3040-\u30ff]")
_HANGUL = re.compile("[\uac00-\ud7af]")
_SPACED = ("en", "de", "nl", "sv", "fr", "es", "pt", "it", "ru", "pl", "tr")


def _rule_of(sentence: str) -> tuple[RuleKind, float] | None:
    """Return kind and strength of the strongest rule in a sentence."""
    best: tuple[RuleKind, float] | None = None
    for spoken, row in _candidates(sentence):
        if (best is None or row.strength > best[1]) and _states(sentence, spoken, row):
            best = (row.kind, row.strength)
    return best


def _candidates(sentence: str) -> Iterator[tuple[Grammar, RulePattern]]:
    """Yield the patterns that have one of their words in the sentence."""
    seen: set[int] = set()
    by_word = _by_word()
    for word in set(_WORD.findall(sentence)):
        for row in by_word.get(word, ()):
            if id(row[1]) not in seen:
                seen.add(id(row[1]))
                yield row
    if _DENSE.search(sentence):
        spoken = grammar("ko" if _HANGUL.search(sentence) else "ja" if _KANA.search(sentence) else "zh")
        yield from ((spoken, row) for row in spoken.patterns)


def _states(sentence: str, spoken: Grammar, row: RulePattern) -> bool:
    """Tell whether a pattern matches outside of narrative clauses."""
    if row.guard == "none":
        return row.pattern.search(sentence) is not None
    for match in row.pattern.finditer(sentence):
        start, end = _clause(sentence, match)
        if not spoken.tells.search(sentence[start : match.end() if row.guard == "before" else end]):
            return True
    return False


def _clause(sentence: str, match: re.Match[str]) -> tuple[int, int]:
    """Return the span of the clause in which a match ends."""
    last = max(match.start(), match.end() - 1)
    start = 0
    for boundary in _CLAUSE.finditer(sentence):
        if boundary.end() > last:
            return min(start, match.end()), max(boundary.start(), match.end())
        start = boundary.end()
    return min(start, match.end()), len(sentence)


@cache
def _by_word() -> dict[str, tuple[tuple[Grammar, RulePattern], ...]]:
    """Return the patterns of all languages with spaces, by each word that may call for one."""
    index: dict[str, tuple[tuple[Grammar, RulePattern], ...]] = {}
    for spoken in map(grammar, _SPACED):
        for row in spoken.patterns:
            for word in dict.fromkeys(_WORD.findall(row.words)):
                index[word] = (*index.get(word, ()), (spoken, row))
    return index
