"""Words that ask but do not tell: articles, pronouns, auxiliaries, prepositions, conjunctions, question words.

Closed classes of the languages that most stores hold. They are rare enough in what people say ("when", "which")
for BM25 to take them for telling, and stand in every question. Only queries leave them out, and only those of
the language that the query is in: German "die" is an article, English "die" is not. Documents keep every word,
so a query of nothing else still finds its words.
"""

from __future__ import annotations

from functools import cache

__all__ = ["function_words_of"]

_WORDS = {
    "en": """a about after again all also am an and any anything are as ask at be been before being between both but
        by can could did do does doing done each else ever every everything for from had has have having he her here
        hers him his how i if in into is it its just let me mention mentioned might mine more most much must my no nor
        not of on one or other our ours out over please said say says shall she should so some something such tell
        than that the their theirs them then there these they thing things this those through to told too under until
        up us very was we were what when where which while who whom whose why will with within without would yes yet
        you your yours""",
    "de": """aber alle als also am an auch auf aus bei bin bis bist da dann das dass dein deine dem den der des die
        dies diese dieser doch du durch ein eine einem einen einer eines er es für gibt hab habe haben hat hatte ich
        ihm ihn ihr ihre im in ist ja kann kein keine können man mein meine mich mir mit muss nach nicht noch nur ob
        oder sein seine sich sie sind so über um und uns unser unter vom von vor wann war waren warum was weil welche
        welcher welches wem wen wenn wer werden wie wieder wir wird wo wohin woher wurde wurden zu zum zur""",
    "fr": """ai as au aux avait avec avez avoir avons c ce ces cet cette comme comment d dans de des donc dont du elle
        elles en est et était êtes étaient être eu il ils j je l la le les leur leurs lui ma mais me même mes moi mon n
        ne nos notre nous on ont ou où par pas plus pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa
        sans se ses si son sont suis sur ta te tes toi ton tu un une vos votre vous y""",
    "es": """a al algo alguna alguno ante antes como cómo con cuál cuáles cuándo cuanto cuánto de del desde donde dónde
        durante e el él ella ellas ellos en entre era eran eres es esa ese eso esta está están estas este esto estos
        fue fueron ha había han hasta hay he la las le les lo los más me mi mis muy nada ni no nos nosotros nuestra
        nuestro o os para pero por porque qué que quién quien quiénes se sea ser si sí sin sobre son soy su sus también
        te tengo ti tiene tu tus un una uno unos y ya yo""",
    "it": """a ad agli ai al alla alle allo anche c che chi ci come con cosa cui da dai dal dalla dalle dallo degli dei
        del della delle dello di dove e è ed era erano gli ha hai hanno ho i il in io l la le lei li lo loro lui ma mi
        mia mie miei mio ne negli nei nel nella nelle noi non nostra nostro o per perché più quale quali quando quanto
        quella quello questa queste questi questo se sei si sia siamo siete sono sta su sua sue sui sul sulla suo suoi
        te ti tra tu tua tuo un una uno vi voi""",
    "pt": """a ao aos as às até com como da das de dela dele deles do dos e é ela elas ele eles em entre era eram essa
        esse esta está estão este eu foi foram há isso isto já la lhe lo mais mas me mesmo meu meus minha minhas muito
        na não nas nem no nos nós nossa nosso num o onde os ou para pela pelas pelo pelos por porque porquê qual quais
        quando quanto que quem são se sem ser será seu seus só sua suas também te tem tenho ter teu tinha tu tua um uma
        você vocês""",
    "nl": """aan al als bij dan dat de der deze die dit doch doen door een en er ge geen had heb hebben heeft hem het
        hier hij hoe hun iemand iets ik in is ja je jij jou jouw kan kon kunnen maar me meer men met mij mijn moet na
        naar niet niets nog nu of om omdat ons onze ook op over te tegen toch toen tot u uit uw van veel voor waar
        waarom wanneer want waren was wat we welk welke wel werd wezen wie wij wil worden zal ze zei zich zij zijn zo
        zonder zou""",
    "ru": """а без был была были было быть в вам вас ведь во вот все всё вы где да для до его ее её если есть еще ещё
        же за и из или им их к как какая какие какой каков когда кого кому кто ли мне мой моя мы на над нам нас наш не
        него нее неё нет ни них но о об один он она они от по под после при с сам свой себя со так также такой там те
        тебе тебя то того тоже только том ты у уже чего чем что чтобы эта эти это этот я""",
}


@cache
def _by_language() -> dict[str, frozenset[str]]:
    return {language: frozenset(words.split()) for language, words in _WORDS.items()}


def function_words_of(words: list[str]) -> frozenset[str]:
    """Return the function words of the language that most of these (lower-case) words speak for, or none."""
    votes = {language: sum(word in known for word in words) for language, known in _by_language().items()}
    best = max(votes, key=lambda language: votes[language])
    return _by_language()[best] if votes[best] else frozenset()
