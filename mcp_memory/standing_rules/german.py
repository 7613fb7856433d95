"""Standing rules in German."""

from __future__ import annotations

from mcp_memory.standing_rules.grammar import Grammar, RulePattern

__all__ = ["GERMAN"]

_DE_START = (
    r"(?:^\W*|[,;:(–—]\s*| - |\b(?:und|aber|also|oder|dann|bitte|auch|oh|ach|ja|ok|okay|nochmal|übrigens"
    r"|sonst|sondern) )"
)

_DE_NEVER = r"(?:nie|niemals|keinesfalls|auf keinen fall|unter keinen umständen|auf gar keinen fall)"
_DE_ALWAYS = (
    r"(?:immer(?! noch| wieder| mehr| schon| dann\b| öfter| so\b| gut| gern| da\b| hin\b| (?:das|die|der"
    r"|den)(?:selbe| gleiche)| diese[rsn]?\b| \w{3,}er\b)|stets|grundsätzlich"
    r"|ausnahmslos)"
)
_DE_IDIOM = (
    r"(?:problem|ahnung|sorge|thema|stress|ding\b|plan\b|lust|zeit\b|wunder|wort|bock|eile|angst|mensch"
    r"|frage|zweifel|chance"
    r"|grund\b|unterschied|witz|idee|schlecht|einzig|gut|besser|antwort|spaß|scherz|mal\b)"
)
_DE_NOW = r"(?:jetzt|heute|noch|gleich|hier|das|es|den|diese[nmrs]?|morgen|ihn)"
_DE_DAY = (
    r"(?:(?:am )?(?:mon|diens|mittwoch|donners|frei|sams|sonn)(?:tag)?(?:vormittag|abend|nachmittag)?s?"
    r"|mittwochs?|werktags"
    r"|am wochenende|wochenends|vormittags|nachmittags|morgens|abends|nachts|mittags|sonnabends)"
)
_DE_DO = (
    r"(?:antworte?|benutz|verwend|schreib|nimm|nehm|sag|mach|schick|nenn|setz|red|sprich|sprech|gib|geb"
    r"|stell|frag|füg|leg|prüf"
    r"|teste?|versprich|versprech|erwähn|übersetz|runde?|formatier|kürz|zitier|lass|lösch|speicher|ruf|kauf"
    r"|plan|buch)(?:e|en|t)?"
)
_DE_STORY = (
    r"\b(?:ich|er|es|wir|ihr|man|mich|uns|hab|habe|hat|hast|haben|hatte\w*|war|waren|ist|sind|bin|bist"
    r"|wurde\w*|wird|geht|ging"
    r"|kam|kommt|gab|gibt|läuft|klappt|funktioniert|kann|konnte\w*|könnte\w*|will|wollte\w*|muss|musste\w*"
    r"|mag|scheint|weiß"
    r"|wusste|sagt|sagte|macht|machte|lacht|bleibt|blieb|vergess\w*|ge(?!gen|ben|hen|nau|mein|schäft|samt|rn"
    r"|wicht)\w{3,}(?:t|en))\b"
)

GERMAN = Grammar(
    "de",
    _DE_STORY,
    (
        RulePattern(
            "instruction",
            0.95,
            "sofort jetzt nun heute künftig zukünftig zukunft fortan",
            r"\b(?:ab (?:sofort|jetzt|nun|heute)|von (?:jetzt|nun|heute) an|künftig|zukünftig|fortan|in zukunft)\b"
            r"(?! (?:werde|habe|bin|mache|gehe|esse|wird|hat|ist|kann|könnte))(?![^,.;:!?]*\b(?:werde ich|ich werde"
            r"|wird es)\b)"
            r"(?=[^.!?]*(?:\b(?:bitte|nur|nie|niemals|immer|kein\w*|will|möchte|alle\w*|gilt|mit|ohne|auf|soll\w*"
            r"|muss|müssen)\b"
            rf"|\w{{3,}}en\W*$|\b{_DE_DO}\b))",
            "none",
        ),
        RulePattern(
            "instruction",
            0.9,
            "nie niemals keinesfalls fall umständen",
            rf"{_DE_START}{_DE_NEVER}\b(?! (?:wieder|mehr|im leben|zuvor|und nimmer|im ernst|krank|da\b|zu hause"
            rf"|langweilig))\s+[\w¤-]",
            "clause",
        ),
        RulePattern(
            "instruction",
            0.6,
            "nie niemals",
            r"(?:^|[,;:–—]) ?(?:(?:und|aber|bei\w*|am|im|in|vor|nach|mit|auf|an|zu\w*) )[\w¤ -]{2,40} (?:nie"
            r"|niemals)\s*(?:$|[,.;!])",
            "clause",
        ),
        RulePattern(
            "instruction", 0.85, "immer stets grundsätzlich ausnahmslos", rf"{_DE_START}{_DE_ALWAYS} [\w¤-]", "clause"
        ),
        RulePattern(
            "instruction",
            0.8,
            "immer stets grundsätzlich ausnahmslos nie niemals",
            rf"(?:^\W*|[,;:–—] ?|und )(?:(?!sie|das|die|wer|der)[\w¤-]+ ){{1,5}}(?:{_DE_ALWAYS}|nie|niemals) "
            r"(?:(?:in|mit|ohne|als|auf|vor|nach|per|über|unter|an|am|im|zum|zur|bei|aus|von|nur|erst|zuerst|klein"
            r"|groß|zwei"
            r"|beide|der|die|das|den|dem|ein|eine|einen) |¤|(?:[\w¤-]+ ){0,4}\w{3,}(?:en|ern|eln)(?=\s*(?:$"
            r"|[,.;:!)])))",
            "clause",
        ),
        RulePattern(
            "instruction",
            0.85,
            "immer stets nie niemals kein keine keinen nur ausschließlich nicht",
            rf"{_DE_START}{_DE_DO} (?:(?!ich|wir|er|es)[\w¤-]+ ){{0,4}}?(?:immer(?! noch| wieder)|stets|nie|niemals"
            rf"|ausschließlich|nicht mehr)\b",
            "clause",
        ),
        RulePattern(
            "instruction",
            0.6,
            "bitte",
            rf"{_DE_START}(?:kein(?:e|en|er|es|erlei)?|nie|niemals|immer|ohne|nur|ausschließlich) (?!{_DE_IDIOM})"
            r"[^.;:!?]{1,50}\bbitte\b",
            "clause",
        ),
        RulePattern(
            "instruction",
            0.75,
            "bitte",
            r"\bbitte (?:(?!nicht)[\w¤-]+ ){0,2}?(?:nie|niemals|immer(?! noch| wieder)|stets|kein\w*|ohne|nur noch"
            r"|nicht mehr"
            rf"|ausschließlich)\b(?! {_DE_IDIOM})(?![^.;:!?]*\b(?:jetzt|heute|diesmal)\b)",
            "none",
        ),
        RulePattern(
            "instruction",
            0.7,
            "kein keine keinen keiner keinerlei",
            rf"{_DE_START}kein(?:e|en|er|es|erlei)? (?!{_DE_IDIOM})[\w¤-]+(?: [\w¤-]+){{0,4}}(?:,|,? und|,? oder)"
            rf" (?:also )?(?:kein\w*|nie) (?!{_DE_IDIOM})",
            "clause",
        ),
        RulePattern(
            "instruction",
            0.6,
            "kein keine keinen keinerlei",
            rf"{_DE_START}kein(?:e|en|er|es|erlei)? (?!{_DE_IDIOM})[\w¤-]+ (?:[\w¤-]+ ){{0,5}}?(?:\w{{4,}}(?:en|ern"
            rf"|eln)\W*$"
            r"|(?:in|im|auf|bei|ohne|vor|unter|über|an|am|für|mit) )",
            "clause",
        ),
        RulePattern(
            "instruction",
            0.4,
            "kein keine keinen",
            rf"^\W*(?:und |aber )?kein(?:e|en|er|es)? (?!{_DE_IDIOM})[\w¤-]+(?: [\w¤-]+)?\W*$",
        ),
        RulePattern(
            "instruction",
            0.6,
            "verboten tabu untersagt pflicht erlaubt gestattet unerwünscht",
            r"\b(?:ist|sind|bleibt|bleiben) (?:[\w¤-]+ )?(?:streng |strikt |absolut )?(?:verboten|tabu|untersagt"
            r"|pflicht"
            r"|nicht (?:erlaubt|gestattet)|unerwünscht)\b|\bverboten (?:ist|sind)\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.7,
            "darf dürfen muss müssen soll sollen",
            r"\b(?:darf|dürfen|muss|müssen|soll|sollen) (?!ich|wir|er|es|sie|man|das|doch)(?:[\w¤-]+ ){0,6}?"
            r"(?:nie|niemals|immer(?! noch)|stets|grundsätzlich|ausnahmslos|nur)\b",
            "clause",
        ),
        RulePattern(
            "constraint",
            0.55,
            "darf dürfen",
            r"(?:^|[,;:] |und )(?!das )(?:[\w¤-]+ ){1,5}(?:darf|dürfen) (?:[\w¤-]+ ){0,4}?(?:nicht"
            r"|kein\w*)\b(?! (?:wahr|fehlen|vergessen))",
            "none",
        ),
        RulePattern(
            "instruction",
            0.6,
            "alle alles jede jeder jedes jeden jedem",
            r"\b(?:alle|alles|jede[rsnm]?) (?!tag|mal|jahr|woche|monat|hat|ist|war|sind"
            r"|haben)[^.;:!?]{0,40}\b(?:muss|müssen|gehört|gehören"
            r"|kommt|kommen|bekommt|kriegt|soll|sollen|gilt)\b(?! (?:gut|zusammen|nach hause|zu spät))",
            "none",
        ),
        RulePattern(
            "instruction",
            0.7,
            "ich",
            r"\bich (?:will|möchte|brauche|wünsche mir) (?:\w+ )?(?:nie|niemals|immer|stets|nur noch|alle"
            r"|jede[nrsm]?|alles"
            r"|keine\w* (?!zeit|streit|angst))\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.75,
            "immer stets nie niemals kein keine keinen",
            rf"(?:^\W*|[,;:–—] ?|und )(?:bei|beim|in|im|an|am|für|auf|mit|zu|zum|zur|von|vor|nach"
            rf"|unter) [\w¤ -]{{2,40}}? (?:{_DE_ALWAYS}|nie|niemals|kein\w{{0,2}}) (?!{_DE_IDIOM})[\w¤]",
            "clause",
        ),
        RulePattern(
            "instruction",
            0.45,
            "kein keine keinen",
            rf"^\W*(?:und |aber )?kein(?:e|en|er|es)? (?!{_DE_IDIOM})[\w¤-]+(?: [\w¤-]+)?,",
            "clause",
        ),
        RulePattern(
            "instruction",
            0.55,
            "alle sämtliche",
            r"^\W*(?:alle|sämtliche) [\w¤-]+(?: [\w¤-]+)? (?:in|mit|ohne|als|auf"
            r"|per) [\w¤-]+(?: [\w¤-]+){0,3}(?=\W*$|,)",
            "clause",
        ),
        RulePattern(
            "instruction",
            0.5,
            "gilt kommt kommen",
            r"\bdas gilt (?:auch |nur )?(?:für|bei)\b|\bkomm(?:t|en) (?:mir|uns) (?:nicht|nie|kein\w*)\b",
            "none",
        ),
        RulePattern(
            "constraint",
            0.7,
            "arbeite kann",
            rf"\bich arbeite (?:{_DE_DAY} )?nicht(?: (?:am|an|{_DE_DAY}))|\b(?:mon|diens|donners|frei|sams"
            rf"|sonn)tags kann (?:ich|er|sie) (?:nie|nicht)\b|\bkann (?:ich|er|sie) nie\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.5,
            "bevorzuge bevorzugen hasse lieber",
            r"\bich (?:bevorzuge|hasse es,? wenn)\b|\bwir bevorzugen\b|\bmir (?:ist|sind) [^.]{2,40} lieber\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.8,
            "gilt gelten",
            r"\b(?:gilt|gelten)\b[^.:!?]{0,30}:|\b(?:gilt|gelten) (?:immer|grundsätzlich|ab sofort|ausnahmslos)\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.75,
            "wenn",
            r"\b(?:immer |jedes mal,? )?wenn du (?!zeit|kannst|willst|fertig|magst|möchtest)[^.!?]{2,60}, (?:dann )?"
            rf"(?:bitte|immer|nie|niemals|stets|{_DE_DO} (?:bitte|mir|immer|nie|die|den|das|auch))",
            "none",
        ),
        RulePattern(
            "instruction",
            0.7,
            "siezen duzen sie du gesiezt geduzt siezt duzt",
            r"\b(?:siezen|gesiezt|geduzt)\b|\bper (?:sie|du)\b|\b(?:immer|alle|bitte) (?:\w+ )?duzen\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.75,
            "wird werden",
            r"\b(?:wird|werden) (?:[\w¤-]+ ){0,3}?(?:immer|stets|grundsätzlich|ausnahmslos|nie|niemals|nur"
            r"|ausschließlich)\b"
            r"[^.;:!?,]* (?:\w*ge\w{2,}|\w+ier|ver\w+|be\w+)(?:t|en)\W*$",
            "none",
        ),
        RulePattern(
            "instruction",
            0.6,
            "nenn nenne nennt antworte antworten schreib schreibe",
            rf"{_DE_START}(?:nenn(?:e|t)? mich (?!nicht|ein)|(?:antworte?|schreibe?) mir (?:bitte )?(?:nur "
            rf"|immer )?(?:auf|in|per) )",
        ),
        RulePattern(
            "instruction",
            0.8,
            "ausnahme ausnahmslos regel prinzip",
            r"\bohne ausnahme\b|\b(?:das )?ist (?:eine |die |unsere )?regel\b|\bdie regel (?:ist|lautet)\b"
            r"|\baus prinzip\b|\bin der regel (?:bitte|nur)\b",
            "none",
        ),
        RulePattern(
            "constraint",
            0.85,
            "allergisch allergie allergien unverträglichkeit laktoseintolerant laktoseintoleranz vegan veganer"
            " veganerin vegetarier"
            " vegetarierin vegetarisch zöliakie diabetiker diabetikerin glutenunverträglichkeit nussallergie",
            r"\b(?:bin|ist|sind|hat|habe|hab|haben|reagier\w+|leb\w+|ess\w+|isst)\b[^.;!?]{0,40}\b\w*(?:allergisch"
            r"|allergien?"
            r"|unverträglichkeit|intoleran[tz]\w*|vegan\w*|vegetari\w+|zöliakie|diabetiker\w*)\b",
            "none",
        ),
        RulePattern(
            "constraint",
            0.75,
            "esse trinke vertrage rauche fahre fliege isst trinkt verträgt",
            r"\b(?:ich (?:esse|trinke|vertrage|rauche|fahre|fliege)|\w+ (?:isst|trinkt"
            r"|verträgt)) (?:\w+ )?(?:kein\w*|nie|niemals)\b"
            r"|\bich (?:rauche|trinke|fliege) nicht\b",
            "none",
        ),
        RulePattern(
            "constraint",
            0.7,
            "kann darf",
            r"\b(?:kann|darf) (?:\w+ ){0,3}?(?:nicht|kein\w*|nie|nichts)\b[^.;!?]{0,30}\b(?:essen|trinken|knien"
            r"|heben|bücken|tragen|fliegen"
            r"|klettern|vertragen|rauchen|schleppen|arbeiten)\b(?![^.;!?]*\bheute\b)",
            "none",
        ),
        RulePattern(
            "constraint",
            0.8,
            "nie niemals",
            rf"\b{_DE_DAY} (?:nie|niemals)\b|\b(?:nie|niemals) (?:vor|nach|am|an) (?:{_DE_DAY}|\d|acht|neun|zehn"
            rf"|mittag)",
            "clause",
        ),
        RulePattern("constraint", 0.5, "nur", rf"\bnur {_DE_DAY}(?: und {_DE_DAY})?\s*(?:[,.;!)]|$)", "none"),
        RulePattern(
            "constraint",
            0.5,
            "höchstens maximal spätestens mehr länger später",
            r"\b(?:höchstens|maximal|spätestens(?: um| bis)?|nicht mehr als) (?:\d|zwei|drei|vier|fünf|sechs|zehn"
            r"|eine?[nr]?\b)|\d[^.;:!?]{0,30}"
            r"(?:und |, )(?:nicht|kein\w* \w+) (?:mehr|länger|später)\b",
            "clause",
        ),
        RulePattern(
            "constraint",
            0.6,
            "limit grenze obergrenze maximum budget schmerzgrenze",
            r"\b(?:mein|meine|unser|unsere) (?:limit|grenze|obergrenze|maximum|budget|schmerzgrenze) (?:ist|liegt)\b",
            "none",
        ),
    ),
)
