"""Standing rules in English."""

from __future__ import annotations

from mcp_memory.standing_rules.grammar import Grammar, RulePattern

__all__ = ["ENGLISH"]

# Where a clause begins, so that no subject stands before what follows.
_START = (
    r"(?:^\W*|[,;:(–—]\s*| - |\b(?:and|but|so|or|then|also|please|ok|okay|oh|ah|well|btw|again|remember|just"
    r"|yes|instead|otherwise),?\s+)"
)
# Verbs of what an assistant is asked to do. Not in it: verbs of proverbs and cheer (give up, stop, lose, believe).
_DO = (
    r"(?:add|address|answer|append|apply|archive|ask|assume|attach|avoid|begin|bill|book|break down|build|call"
    r"|capitali[sz]e|change|charge|check|cite|close|combine|commit|compile|confirm|contact|convert|copy|create|cut|date"
    r"|delete|deliver|deploy|describe|discuss|document|draft|drop|edit|email|end|explain|expose|file|flag|follow|format"
    r"|forward|generate|give|group|guess|hard-?code|hide|import|include|indent|insert|install|invent|invoice|keep|label"
    r"|leave|limit|link|list|load|log|mail|make|mark|mention|merge|mix|mock|modify|move|name|note|number|offer|open"
    r"|order|overwrite|pay|phone|pick|plan|plant|post|prefer|prefix|print|promise|propose|prune|publish|push|put|quote"
    r"|recommend|refer|remove|rename|repeat|replace|reply|respond|return|reuse|rewrite|ring|round|run|save|say"
    r"|schedule|sell|send|serve|set|share|ship|show|shorten|sign|skip|sort|speak|specify|spell|squash|start|state"
    r"|stick to|store|submit|suggest|switch|tag|talk|tell|test|touch|translate|treat|type|underline|update|upload|use"
    r"|validate|verify|warn|wash|water|wrap|write)\b"
)
_NO_IDIOM = (
    r"(?:specific|[^.;!?]{0,80}\b(?:que|de|el|los|las|gracias|nada|pero|por|con|mi|lo|una|non|che|di|não|il)\b|prob"
    r"|idea|worr|way\b|thank|doubt|need\b|clue|rush|luck|wonder|matter|one\b|longer\b|more\b|biggie|pressure"
    r"|offen[cs]e|big deal|chance|kidding|good\b|time\b|comment|hurry|such|better|less\b|joke|question"
    r"|reason|sign\b|word"
    r"|news|answer\b|response\b|change\b|difference|fun|sweat|issue|plans?\b|experience|shame|surprise"
    r"|excuse|harm|regret"
    r"|pain|i\b|it\b|he\b|she\b|we\b|you\b|they\b|that\b|this\b|the\b|not?\b|me\b|te\b|se\b|lo\b|la\b|hay|es\b|s[eé]\b"
    r"|est[aá]|tengo|puedo|quiero|sooner|stone|pun\b|cap\b|lie\b|brainer|feeling|going|meaning|judg|substitute|end\b"
    r"|point|use\b|hope|interest\b|success|bueno|me\b|but\b|actually|of course|just\b|don|can|and\b|or\b"
    r"|in\b|for\b|on\b)"
)
_NOW = r"(?:yet|now|today|tonight|tomorrow|here|this|that|it|those|these|them|him|her|until|till|too much|so much)"
_DAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekdays?|weekends?|mornings?|afternoons?|evenings?|nights?)"
_LANGUAGE = r"(?:english|german|french|spanish|italian|portuguese|dutch|russian|chinese|japanese|korean|polish|swedish)"
_PREPOSITION = r"(?:in|on|with|without|at|by|for|before|after|from|as|via|through|over|under|more than|less than)"
_HANDLED = (
    r"(?:written|spelled|spelt|called|named|put|signed|sent|stored|kept|formatted|rounded|quoted|shown|addressed"
    r"|capitali[sz]ed|translated|used|committed|merged|deployed|mentioned|charged|billed|invoiced|printed|listed|cited"
    r"|sorted|edited|stated|labell?ed|served|paid|delivered|abbreviated|reviewed|tested|logged)"
)

ENGLISH = Grammar(
    "en",
    r"\b(?:i|he|she|we|they|it|there|who|which|was|were|had|did|been|seen|came|went|got|knew|felt|\w+(?:'ve|'d|'ll|'m)"
    r"|(?!need|includ|embed|exceed|feed|speed|seed|weed)\w{2,}ed)\b",
    (
        # --- never, always, only
        RulePattern(
            "instruction",
            0.6,
            "never",
            r"^\W*(?:and |but |so |please )?never (?:ever )?(?!mind\b|again\b|say never|give up|a\b|an\b|in\b|on\b|at\b"
            r"|the\b|too\b|been|had|heard|knew|thought|found|saw|seen|got|gets?\b|went|made|felt|said|did|done|was|were"
            r"|took|met|ate|fails?\b|works?\b|stops?\b|happens?\b|forget what|would|could|will)[a-z]{3,}(?<!ed)(?<!ing)"
            r"(?<!s)\b (?!again\b|been\b)\w",
        ),
        RulePattern(
            "instruction",
            0.9,
            "never",
            rf"{_START}never (?:ever |again |just )?(?!say never|give up|leave (?:your|me|us)|in (?:my|a million"
            rf"|all)|before[ ,.!]|at (?:home|rest)|on time|the same"
            rf"|a (?:dull|bad|good)|the less|more\b|by (?:any|chance))(?:{_DO}|¤|(?:an?|the|any|both|two|only) "
            rf"|{_PREPOSITION} )",
        ),
        RulePattern(
            "instruction",
            0.7,
            "never",
            r", (?:and |but )?never (?!again\b|mind\b|ever\b|been|seen|know|happen|works?\b|stops?\b|fails?\b"
            r"|gets?\b|ends?\b"
            r"|comes?\b|goes\b|does|disappoint|gives?\b|lets?\b|listens?\b|boring|late\b|easy|enough|have|had|has"
            r"|thought"
            r"|the|a\b|in\b|to\b|is\b|was\b|did|too\b|quite|really|once|feels?\b|got|tried|took|made|found|heard"
            r"|met\b|said"
            r"|\w+ing\b)[\w¤-]+(?: [\w¤-]+){0,2}(?=[,.;!]|$)",
        ),
        RulePattern(
            "instruction",
            0.85,
            "always",
            rf"{_START}always (?!in (?:my|the mood)|on (?:my|the go|time)|with (?:me|you|my)|for (?:me|you)"
            rf"|the (?:best|same)"
            rf"|by my|at my|as (?:good|fun|if|much|well)|more|keep in mind|make (?:me|my|sure to have fun))"
            rf"(?:{_DO}|¤|(?:the|both|two) |{_PREPOSITION} |\d|:)",
        ),
        RulePattern("instruction", 0.6, "always", r", always(?:,? please)?\s*[:.!]*$"),
        RulePattern(
            "instruction",
            0.75,
            "always never only",
            r"\b(?!i |he |she |we |they |it |who |there )[\w¤-]+ (?:is|are|be|gets?|comes?|goes) (?:always|never|only) "
            rf"(?:ever )?{_HANDLED}\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.45,
            "always never",
            r"\b(?!people|kids|children|parents|friends|things|you|everyone|someone|they)[\w¤-]+ (?:always|never) "
            r"(?:goes?|starts?|begins?|ends?|carry|carries|includes?|contains?|stays?|leaves?) "
            r"(?:in|into|with|on|a|an|the|to|behind|after|under|out|at)\b",
        ),
        RulePattern(
            "instruction",
            0.5,
            "we",
            r"\bwe (?:always|never|only|don't|do not) (?:ever )?(?:use|write|name|call|address|sign|charge|bill"
            r"|invoice|quote"
            r"|commit|deploy|merge|push|ship|round|format|spell|store|log|version|tag|mock|abbreviate|accept"
            r"|deliver on)\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.85,
            "must should shall needs has have",
            r"\b(?<!one )(?:must|shall|needs to|has to|have to) (?:always|never|under no circumstances|only ever)\b"
            r"(?! (?:be (?:grateful|proud|there|happy|thankful)|forget|remember|underestimate|tell|know))"
            rf"|\bshould (?:always|never) {_DO}",
        ),
        RulePattern("instruction", 0.7, "must mustn't", r"\b(?:must not|mustn't)\b"),
        RulePattern("instruction", 0.5, "only", rf"{_START}only (?:{_DO}|¤|(?:in|with|after|before|from|for|on) )"),
        RulePattern(
            "instruction",
            0.6,
            "only",
            rf"{_START}{_DO}[^,.;:!?]{{0,40}}\bonly (?:in|with|on|after|before|from|for|when|if|¤)",
        ),
        RulePattern(
            "instruction",
            0.55,
            "only",
            r"(?:^\W*|[,;:] (?:and )?)(?:(?!the |not |if |is |are |have |has |my )[\w¤-]+ ){1,3}only "
            r"(?:in|with|before|after|on|from|as|via|through|by|for)\b",
        ),
        # --- from now on, whenever
        RulePattern(
            "instruction",
            0.95,
            "on onwards onward out forward henceforth",
            r"^(?![^.;!?]*\bi(?:'ll|'ve|'m| will| have| am)\b)[^.;!?]*?"
            r"\b(?:from (?:now|here|today|this point) on(?:wards?)?|from here on out|henceforth"
            r"|(?<!keep )(?<!keeps )(?:going|moving) forward)\b"
            r"(?!,? (?:i|he|she|they|we)(?:'ll|'m|'re| will| am| are| can| have| was| plan| think| need to)\b)",
        ),
        RulePattern(
            "instruction",
            0.85,
            "on forward",
            r"\b(?:i(?: want|'d like| would like| need) (?:you|all|every|it|them|my)|we (?:will |'ll )?(?!are|were"
            r"|have|had|can|could|should see)\w+)\b"
            r"[^.;!?]* (?:from now on|going forward)\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.85,
            "future",
            rf"\bin (?:the )?future,? (?:please |always |never |don't |do not |only )?(?:{_DO}|please|always|never"
            rf"|don't (?!hesitate))",
        ),
        RulePattern(
            "instruction",
            0.8,
            "when whenever time anytime",
            r"\b(?:when(?:ever)?|every time|each time|any ?time) you (?!get|have|are|can|find|finish|want|were|feel"
            r"|need|think"
            r"|see|come|know|first|said|mention|go\b|try|'re|need|start|begin)[^.!?,]{2,60}, "
            rf"(?:please |always |never |don't |do not |only |then )*(?:{_DO}|please|always|never|i want|i'd like)",
        ),
        RulePattern(
            "instruction",
            0.7,
            "when whenever time",
            rf"{_START}{_DO}[^.!?]{{2,80}} (?:whenever|every time|each time) you\b",
        ),
        RulePattern(
            "instruction",
            0.8,
            "exception exceptions circumstances times rule stone negotiable principle",
            r"\b(?:no|without) exceptions?\b|\bunder no circumstances\b|\bat all times\b|\bas a rule,"
            r"|\brules? of the house\b"
            r"|\bhouse rule\b|\b(?:carved|set) in stone\b|\b(?:not |non-?)negotiable\b|\bon principle\b|\bis (?:my"
            r"|our|the) rule\b"
            r"|\b(?:my|our) rule is\b",
        ),
        # --- prohibitions
        RulePattern("instruction", 0.95, "ever", r"\bno [^.;:!?]{2,60},? ever\s*(?:[.!,]|$)", "none"),
        RulePattern(
            "instruction", 0.6, "no", rf"{_START}no (?!{_NO_IDIOM})[\w¤][^.;:!?]{{1,60}}\b(?:please|pls|ever|at all)\b"
        ),
        RulePattern(
            "instruction",
            0.7,
            "no",
            rf"{_START}no (?!{_NO_IDIOM})[\w¤][^,.;:!?]{{0,40}}(?:,|,? and|,? or) (?:and |or )?(?:no|nothing|never) "
            rf"(?!{_NO_IDIOM})",
        ),
        RulePattern(
            "instruction",
            0.65,
            "no",
            rf"{_START}no (?!{_NO_IDIOM})[\w¤][^,.;:!?]{{1,50}} (?:without|before|until|unless|anywhere|whatsoever"
            rf"|with|(?:more|longer|later|higher|bigger) than"
            r"|allowed|in any|in (?:the|my|our|this)|on (?:the|my|our|this)|of (?:the|any|his|her)|to (?:any|the)"
            r"|except"
            r"|goes|go|gets?|leaves?)\b",
        ),
        RulePattern(
            "instruction",
            0.6,
            "no",
            rf"{_START}no (?!{_NO_IDIOM}|meeting|evening|morning|thing|being)\w+ing\b(?! \w+ed)",
        ),
        RulePattern(
            "instruction", 0.4, "no", rf"^\W*(?:and |but |so )?no (?!{_NO_IDIOM})[\w¤-]+(?: [\w¤-]+){{0,2}}\W*$"
        ),
        RulePattern(
            "instruction",
            0.7,
            "nothing",
            rf"(?:{_START}|{_DO} (?:me )?)nothing (?:ever )?(?:\w+s into|goes (?:in|out|on|over|to|past|before)"
            rf"|leaves|with|for|containing|after|before|without"
            r"|on)\b(?! (?:me|us|it|you|there))",
        ),
        RulePattern(
            "instruction",
            0.45,
            "no",
            rf"^\W*(?:and |but |so )?no (?!{_NO_IDIOM})(?![^,]*\b{_NOW}\b)[\w¤-]+(?: [\w¤-]+){{0,2}},",
            "before",
        ),
        RulePattern(
            "instruction",
            0.55,
            "all",
            r"^\W*all (?!the |of |in |set|good|done|that|this|i |you|we)[\w¤-]+(?: [\w¤-]+)? (?:in|with|without"
            r"|as) [\w¤-]+(?: [\w¤-]+){0,3}(?=\W*$|,)",
            "clause",
        ),
        RulePattern(
            "constraint",
            0.6,
            "do",
            r"\b(?:can't|cannot|don't) do (?:mon|tues|wednes|thurs|fri|satur|sun)days\b",
            "none",
        ),
        RulePattern(
            "instruction", 0.6, "rule", r"\b(?:it's|it is|that's|that is|is) (?:a|the|my|our) (?:\w+ )?rule\b", "none"
        ),
        RulePattern("instruction", 0.9, "ever", rf"\b(?:do not|don't|dont) ever (?!give up){_DO}"),
        RulePattern(
            "instruction",
            0.5,
            "don't dont not",
            rf"(?:{_START}|\bplease )(?:you )?(?:do not|don't|dont) (?!give up|generate|repeat|explain|start"
            rf"|leave\b){_DO}(?![^,.;:!?]*\b{_NOW}\b)",
        ),
        RulePattern("instruction", 0.7, "stop", rf"{_START}stop (?!by\b|being|worrying|thinking)\w+ing\b"),
        RulePattern(
            "instruction",
            0.55,
            "forbidden banned taboo prohibited limits table question go allowed permitted mandatory compulsory"
            " obligatory",
            r"(?:\b(?:is|are|stays?|remains?)|'s) (?:strictly |absolutely |totally )?(?:forbidden|banned|taboo"
            r"|prohibited"
            r"|off[- ]limits|off the table|out of the question|an? (?:absolute )?no[- ]go|not (?:allowed|permitted)"
            r"|mandatory"
            r"|compulsory|obligatory)\b",
            "none",
        ),
        RulePattern("constraint", 0.6, "allows allow", r"\ballows? (?:me |us )?(?:no|only)\b"),
        RulePattern(
            "instruction",
            0.5,
            "avoid",
            rf"{_START}avoid (?:using|all|any|the word|\w+ing|[\w-]+s)\b(?![^,.;:!?]*\b{_NOW}\b)",
        ),
        RulePattern(
            "instruction",
            0.7,
            "please",
            r"\bplease (?:always|never|only|refrain|stick to|no|nothing|avoid)\b|\b(?:always|never"
            r"|only) [^.;:!?]{1,40},? please\b",
        ),
        RulePattern(
            "instruction",
            0.4,
            "please pls",
            r"^(?!\W*(?:yes|yeah|ok|yep|sure|sí|si|ja|hi|hello|i |a |one|two)\b)[^.?!]*"
            r"\b(?:in|without) (?!advance)(?:[\w¤-]+ ){0,2}[\w¤-]+,? (?:please|pls)(?=[,.;!)]|\W*$)",
        ),
        # --- what has to be, and what is wanted
        RulePattern(
            "instruction",
            0.65,
            "every each all any everything anything",
            rf"{_START}(?:every|each|all|any|everything|anything) (?!i |you |we |of a |time |day |night |morning "
            rf"|year |week )"
            r"(?:[\w¤-]+ ){0,4}(?:must|has to|have to|needs? to be|shall)\b",
        ),
        RulePattern(
            "instruction",
            0.6,
            "every each any",
            r"\b(?:every|each|any) (?!other|time|day|year|week|night|morning|moment|kid|child|person|step"
            r"|one\b)[\w-]+ (?:[\w-]+ ){0,2}"
            r"(?:gets?|goes|starts?|ends?|comes?) (?:an?|its|in|into|with|to|behind|through|by|on|as|two|one)\b",
        ),
        RulePattern(
            "instruction",
            0.6,
            "every each",
            rf"\b(?:every|each) (?:{_DAY}|day|week|month|quarter)\b[^.;!?]{{0,40}}\b(?:by|before|at the latest) \d",
        ),
        RulePattern(
            "instruction",
            0.5,
            "lowercase uppercase case caps metric utc capitals bold italics",
            r"\b(?:all|every|everything|any)\b[\w ]{0,30} (?:is|are|in|goes) (?:always "
            r"|written )?(?:in )?(?:lower ?case|upper ?case"
            r"|metric|utc|bold|italics|capitals|caps)\b",
        ),
        RulePattern(
            "instruction",
            0.7,
            "want need expect",
            r"\bi (?:only )?(?:want|need|expect) (?:all|every|each|everything|no|nothing) (?!i |the|my|of)\w",
            "none",
        ),
        RulePattern(
            "instruction",
            0.7,
            "want",
            rf"\bi (?:don't|do not|never) (?:ever )?want (?:you to|to (?:see|read|find)|any)\b(?![^,.;:!?]*\b{_NOW}\b)",
            "none",
        ),
        RulePattern(
            "instruction",
            0.6,
            "hate dislike stand like",
            r"\bi (?:really )?(?:hate|dislike|can't stand|cannot stand|don't like) (?:it when you|when you"
            r"|being (?:called|shouted"
            r"|addressed|asked))\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.5,
            "prefer",
            r"(?<!think )(?<!guess )\b(?:i|we|my \w+) (?:always |generally |usually |really |much "
            r"|also )?prefers? (?!to have gone)",
            "none",
        ),
        RulePattern(
            "instruction",
            0.6,
            "call",
            rf"{_START}call me (?!when|later|back|if|crazy|tomorrow|on|at|an?|the|in|up|before|after|today|tonight"
            rf"|any)\w",
        ),
        RulePattern(
            "instruction",
            0.75,
            "me us",
            rf"{_START}(?:answer|reply|respond|write|speak|talk|address)(?: to)? (?:me|us) (?:only |always )?(?:in"
            rf"|as|by|formally"
            r"|informally)\b(?! (?:an?|the) (?:poem|story|list|essay|letter|email))",
        ),
        RulePattern("instruction", 0.45, "in", rf"{_START}(?:answer|reply|respond) (?:only |always )?in {_LANGUAGE}\b"),
        RulePattern(
            "instruction",
            0.6,
            "keep",
            rf"{_START}keep (?:your |all |the )?(?:answers?|replies|responses?|messages|mails|emails|comments"
            rf"|summaries|names"
            rf"|sentences|paragraphs|functions|commits|explanations)\b(?![^,.;:!?]*\b{_NOW}\b)",
        ),
        RulePattern(
            "instruction",
            0.5,
            "not instead rather",
            rf"{_START}(?:use|write|say|call (?:them|me|him|her)|spell)\b[^.,;:!?]{{1,50}}(?:, not| instead of"
            rf"| rather than)\b"
            rf"(?![^.;:!?]*\b{_NOW}\b)",
        ),
        # --- what a person cannot or does not do
        RulePattern(
            "constraint",
            0.85,
            "allergic allergy allergies intolerant intolerance vegan vegetarian pescatarian coeliac celiac diabetic"
            " teetotal"
            " dyslexic",
            r"(?:(?<!n't )(?<!not )\b(?:am|is|are|have|has|gone|went)|'m|'s|'re)\b (?:(?!not "
            r"|no )[\w'-]+ ){0,3}?(?:allergic"
            r"|allerg(?:y|ies) to|\w+ allergy"
            r"|(?:lactose|gluten|\w+)[- ]intoleran(?:t|ce)|(?<! already )(?:vegan|vegetarian|pescatarian|c?oeliac"
            r"|celiac|diabetic|teetotal"
            r"|dyslexic|colou?r[- ]blind)s?(?=\W*$|[,.;:!)]| (?:and|so|but|since|now|because|for|which|who|from"
            r"|in the)\b))"
            r"|^\W*allergic to\b",
            "none",
        ),
        RulePattern(
            "constraint",
            0.75,
            "can't cannot not don't never longer",
            r"\b(?:i|he|she|we|[\w-]+) (?:can't|cannot|can not|am not allowed to|is not allowed to|isn't allowed to"
            r"|mustn't|don't"
            r"|do not|doesn't|never|can no longer|no longer) (?:really |ever |usually )?(?:(?:eat|drink|tolerate"
            r"|digest|touch)s? "
            r"(?!anything (?:today|yet)|it\b|that\b|them\b|another|enough|much more|in (?:the|a|my)\b|at\b|out\b"
            r"|there|here"
            r"|the\b|my\b|your\b|base)[\w-]+"
            r"|(?:kneel|lift|bend|drive|fly|squat|climb|smoke)s?\b(?! (?:\w+ly|it|this|that|home|back|me|there|today"
            r"|tonight|away"
            r"|out|up|to|off|me|him|my|her|the)\b)|work (?:on |after |before |past )(?:the )?(?:\d|weekend|noon|mon"
            r"|tue|wed|thu"
            r"|fri|sat|sun)|(?:take|do|make) (?:phone )?calls)",
            "none",
        ),
        RulePattern(
            "constraint",
            0.75,
            "can't cannot",
            r"\b(?!you |we |they |it |who )[\w-]+ (?:can't|cannot) have (?!kids|children|it\b|that|the|a\b|been"
            r"|enough|both|another|my|your|his|her|this)[\w-]+",
            "none",
        ),
        RulePattern(
            "constraint", 0.8, "for", rf"{_START}no (?!{_NO_IDIOM})[\w -]{{2,30}} for (?:my )?\w+\W*(?:please)?\W*$"
        ),
        RulePattern(
            "constraint",
            0.8,
            "never not",
            rf"\b(?!i |she |he |we |they |you |it |'s |is |are |has |have |was )[\w-]+ (?:never|not) (?:on |before "
            rf"|after |past )?"
            rf"(?:the )?(?:{_DAY}|\d|noon|lunch)|\b{_DAY}(?:,? (?:please )?never| not at all)\b(?! (?:again|mind"
            rf"|been|\w+ed))",
        ),
        RulePattern(
            "constraint", 0.5, "only", rf"\bonly (?:on |in the )?{_DAY}(?: and {_DAY})?\s*(?:[,.;!)]|$)", "none"
        ),
        RulePattern(
            "constraint",
            0.5,
            "limit max maximum ceiling cap budget",
            r"\b(?:my|our|the (?:absolute|upper|hard)) (?:(?:absolute|upper|hard|daily|time|word|page|total) )?"
            r"(?:limit|max|maximum|ceiling|cap|budget) (?:is|stays)\b",
        ),
        RulePattern(
            "constraint",
            0.5,
            "most max maximum tops latest more higher longer later less",
            r"(?:\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|half a|one)\b)[^.;:!?]{0,40}?"
            r"(?: at (?:the )?most|(?<=[\da-z]) max(?:imum)?(?=\s*(?:[,;!)]|$))| at the latest|,? (?:and )?(?:not"
            r"|no) (?:an? \w+ )?(?:more|higher|longer"
            r"|later|less)\b(?! than))",
            "clause",
        ),
    ),
)
