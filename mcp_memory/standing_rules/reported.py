"""Tells whether a sentence reports, imagines or takes back what it says, so that it is no order of who says it.

"My boss says never …", "my colleague always …", "if I were rich I would always …", "you need not always …". Known by
words and their order, in the languages of the rules; a person by their own name is not told from a thing.
"""

from __future__ import annotations

import re
from functools import cache

__all__ = ["is_reported", "people"]

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
    return re.compile("|".join((habits, says, _SAID, _IMAGINED, _TAKEN_BACK)))


def is_reported(sentence: str) -> bool:
    """Tell whether a sentence, in lower case, says what others do or say, or what would be or need not be."""
    return _patterns().search(sentence.replace("’", "'")) is not None
