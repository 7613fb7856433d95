"""Standing rules in Portuguese."""

from __future__ import annotations

from mcp_memory.standing_rules.grammar import Grammar, RulePattern

__all__ = ["PORTUGUESE"]

_PT_START = r"(?:^\W*|[,;:(–—]\s*| - |\b(?:e|ou|mas|então|também|por favor|ah|oh|ok|sim) )"
_PT_DONT = (
    r"(?:us(?:e|es|em)|utiliz(?:e|es)|ponhas?|ponham|digas?|digam|faças?|façam|escrevas?|escrevam|mand(?:e"
    r"|es)|envi(?:e|es)|inclu(?:a|as)|mencion(?:e|es)"
    r"|cham(?:e|es)|traduz(?:a|as)|adicion(?:e|es)|acrescent(?:e|es)|mud(?:e|es)|alter(?:e|es)|apag(?:ue"
    r"|ues)|mex(?:a|as)|coloqu(?:e|es)|bot(?:e|es)|promet(?:a|as)"
    r"|recomend(?:e|es)|sugir(?:a|as)|proponhas?|assin(?:e|es)|repit(?:a|as)|partilh(?:e|es)|compartilh(?:e"
    r"|es)|publiqu(?:e|es)|edit(?:e|es)|invent(?:e|es)|respond(?:a|as)"
    r"|fal(?:e|es)|cobr(?:e|es)|compr(?:e|es)|aceit(?:e|es)|mistur(?:e|es)|abrevi(?:e|es)|arredond(?:e|es)"
    r"|trat(?:e|es)|comec(?:e|es)|comeces?|deix(?:e|es)|marqu(?:e|es)|agend(?:e|es)|ligu(?:e|es)|confirm(?:e"
    r"|es)|convid(?:e|es)|reserv(?:e|es)|corrij(?:a|as)|mostr(?:e|es))"
)
_PT_DO = (
    r"(?:usa|use|utiliza|utilize|põe|ponha|coloca|coloque|diz|diga|escreve|escreva|manda|mande|envia|envie"
    r"|inclui|inclua|traduz|traduza|assina|assine|responde|responda|fala|fale|trata|trate)"
)

_PT_NOW = r"(?:agora|hoje|amanhã|ainda|isto|isso|aqui|esta|este|já)"
_PT_FUNCTION = (
    r"(?:em|no|na|nos|nas|com|sem|de|ao|por|para|antes|depois|mais de|menos de|só|um|uma|dois|ambos|o|os|as) "
)
_PT_NOT_VERBAL = (
    r"(?!(?:o vi|mais (?:vi|volt)|em (?:minha|toda a) vida|na (?:minha )?vida|me|te|se|lhe|é|está|foi|era|há)\b)"
)
_PT_DAY = (
    r"(?:(?:à |às |na |nas )?(?:segunda|terça|quarta|quinta|sexta)s?(?:-feiras?)?|(?:ao |aos "
    r"|no )?(?:sábados?|domingos?)|de (?:manhã|tarde|noite)|(?:ao |aos )fi(?:m|ns) de semana)"
)


PORTUGUESE = Grammar(
    "pt",
    r"\b(?:eu|ela|ele|elas|eles|nós|tenho|tinha|tem|têm|estava\w*|está|estão|é|são|foi|fui|era|eram|há|havia"
    r"|\w{2,}(?:ou|ava|avam|aram|eram|iram|ei))\b",
    (
        RulePattern(
            "instruction",
            0.95,
            "agora diante hoje futuro doravante avante",
            r"\b(?:a partir de (?:agora|hoje|já)|de (?:agora|hoje|aqui) (?:em|por) diante|daqui (?:em"
            r"|para a) (?:diante|frente)|daqui em diante|doravante|no futuro,? (?:por favor|não|sempre"
            r"|usa))\b(?! (?:vou|eu vou|será|estou|vamos))",
            "none",
        ),
        RulePattern(
            "instruction",
            0.9,
            "nunca jamais",
            rf"{_PT_START}(?:nunca|jamais|nunca jamais) (?:(?:me|te|se|lhe|lhes|nos|o|a|os|as) )?(?:{_PT_DONT}\b"
            rf"|\w{{2,}}[aeiô]r(?:-\w+)?\b|¤|{_PT_NOT_VERBAL}(?:{_PT_FUNCTION}|\w+ (?:nem|ou|e) \w+))",
        ),
        RulePattern(
            "instruction",
            0.85,
            "sempre",
            rf"{_PT_START}(?:{_PT_DO} sempre\b|sempre (?!que\b|a mesma|o mesmo|foi|é\b|me\b|te\b|se\b|com(?:igo"
            rf"| (?:a )?minha)|de (?:bom|mau))(?:{_PT_DO}\b|\w{{2,}}[aei]r\b|¤|{_PT_FUNCTION}))",
        ),
        RulePattern(
            "instruction",
            0.75,
            "sempre nunca jamais",
            r"(?:^\W*|[,;:–—] ?|e )(?:(?:em|no|na|nos|nas|ao|aos|com|para|os|as|o|a"
            r"|tod[oa]s?) )(?:[\w¤-]+ ){1,5}(?:sempre|nunca|jamais) (?:¤|(?:em|no|na|com|sem|de|por|o|a|os|as|um"
            r"|uma) )",
        ),
        RulePattern(
            "instruction",
            0.6,
            "nada nenhum nenhuma",
            rf"{_PT_START}nada de (?!nada|isso|mal|novo|mais|especial|errado|importante)[\w¤]|{_PT_START}nada (?:com"
            rf"|sem) \w|{_PT_START}nenhum[a]? (?!problema|ideia|lugar|deles|delas|dia\b)[\w¤]+ (?:em|no|na|sem|antes"
            rf"|depois) ",
        ),
        RulePattern(
            "instruction",
            0.7,
            "favor",
            r"\b(?:sempre|nunca|nada de|nenhuma?|sem|só|apenas) [^.;:!?]{1,50}\bpor favor\b|\bpor favor,? (?:sempre"
            r"|nunca|nada de|nenhuma?|sem|só|apenas)\b(?![^.;:!?]*\b(?:hoje|agora)\b)",
            "none",
        ),
        RulePattern(
            "instruction",
            0.5,
            "não nao",
            rf"{_PT_START}n[ãa]o (?:(?:me|lhe|lhes|nos|o|a|os|as|se) )?{_PT_DONT}\b(?! (?:isso|isto|mal"
            rf"|nada\W*$)\b)(?![^,.;:!?]*\b{_PT_NOW}\b)",
        ),
        RulePattern(
            "instruction",
            0.6,
            "sem",
            r"(?:^\W*|[,;:] (?:e )?)sem (?!dúvida|problema|querer|mim|ti|ela|ele|saber|falta|parar|pressa|mais|falar"
            r"|contar)[\w¤]+(?: [\w¤]+){0,2}(?:,? por favor|, (?:sem|e (?:sem|nunca|sempre)))\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.7,
            "quero odeio detesto",
            r"\b(?:não quero (?:que (?!te|pense|se)|ver|nenhum)|quero (?:sempre|que (?:sempre|nunca|tod[oa]s?))"
            r"|odeio que|odeio quando (?:me|você|tu))\b",
            "none",
        ),
        RulePattern("instruction", 0.5, "prefiro preferimos", r"\b(?:prefiro|preferimos)\b", "none"),
        RulePattern(
            "instruction",
            0.55,
            "todos todas",
            r"^\W*tod[oa]s [oa]s [\w¤]+(?: [\w¤]+)? (?:em|com|sem) [\w¤]+(?: [\w¤]+){0,3}(?=\W*$|,)",
            "clause",
        ),
        RulePattern(
            "constraint",
            0.7,
            "trabalho posso",
            rf"\bnão trabalho {_PT_DAY}|\b{_PT_DAY},? (?:eu )?não (?:posso|trabalho)\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.75,
            "deve devem deves tem",
            r"\b(?:deves?|devem|tens? (?:que|de)|têm (?:que|de)) (?:sempre|\w+ sempre)\b|\b(?:nunca"
            r"|jamais) (?:deves?|devem|se deve|podes?|podem|pode)\b|\bnão (?:se (?:pode|deve)m?|devem?"
            r"|é permitid[oa])\b [^.;:!?]{0,20}\w+[aei]r\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.6,
            "proibido proibida proibidos proibidas tabu obrigatório obrigatória",
            r"\b(?:está|estão|fica|ficam|é|são) (?:\w+ )?(?:proibid[oa]s?|tabu|obrigatóri[oa]s?)\b|^\W*proibid[oa]s? ",
            "none",
        ),
        RulePattern(
            "instruction",
            0.6,
            "tratar trata tratamos trato tutear tuteio",
            r"\b(?:trat\w+)\b[^.;:!?]{0,30}\bpor (?:tu|você|senhora?|o senhor|a senhora)\b|\btute(?:io|ar|amos)\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.6,
            "todo todos toda todas cada tudo",
            r"\b(?:tod[oa]s?|cada|tudo) (?!vez|dia|ano|o dia|o mundo)[^.;:!?]{0,40}\b(?:deve|devem|tem que|tem de"
            r"|têm que|têm de|leva|levam|vai em|vão em|vai com|vão com)\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.75,
            "quando vez sempre",
            rf"\b(?:quando|cada vez que|sempre que) (?:me )?\w+\b[^.!?]{{2,60}}, (?:por favor|nunca|{_PT_DO})\b",
            "none",
        ),
        RulePattern(
            "instruction",
            0.65,
            "só apenas somente",
            rf"{_PT_START}(?:{_PT_DO} (?:[\w¤]+ ){{0,3}})?(?:só|apenas|somente) (?:em|com|para|depois|antes"
            rf"|por) \w+(?: \w+)?\W*$|{_PT_START}{_PT_DO} (?:só|apenas|somente)\b",
        ),
        RulePattern(
            "instruction",
            0.6,
            "me chama chame trata trate fala fale responde responda",
            rf"{_PT_START}(?:chama-me|chame-me|me chame|me chama|trata-me por|trate-me por) (?!quando|amanhã|depois"
            rf"|se )|{_PT_START}(?:fala|fale|responde|responda|escreve|escreva)(?:-me| comigo)? (?:sempre "
            rf"|só )?em (?:português|inglês|espanhol|francês)",
        ),
        RulePattern(
            "instruction",
            0.8,
            "exceção exceções excepção regra",
            r"\bé (?:uma |a )?regra\b|\bsem exce[pç]?ç(?:ão|ões)\b|\b(?:a|minha|nossa) regra é\b|\bpor (?:regra"
            r"|princípio)\b",
            "none",
        ),
        RulePattern(
            "constraint",
            0.85,
            "alérgica alérgico alérgicos alergia alergias alergica alergico intolerante intolerância vegano vegana"
            " vegan vegetariano vegetariana celíaco celíaca diabético diabética",
            r"\b(?:sou|é|são|somos|tenho|tem|têm)\b[^.;!?]{0,40}\b(?:al[eé]rgic[oa]s?|alergias?|intoler\w+"
            r"|vegan[oa]?s?|vegetarian[oa]s?|cel[ií]ac[oa]s?|diab[eé]tic[oa]s?)\b",
            "none",
        ),
        RulePattern(
            "constraint",
            0.75,
            "como bebo fumo conduzo tolero come bebe",
            r"\b(?:não|nunca) (?:como|bebo|fumo|conduzo|tolero|come|bebe) (?!nada\b|mais\b|est|o |a |muito|sempre"
            r"|agora|que\b|antes|em\b|assim|uma?\b)\w+|\bnão (?:fumo|bebo|conduzo|dirijo)\W*$",
            "none",
        ),
        RulePattern(
            "constraint",
            0.7,
            "posso pode podemos podem",
            r"\bnão (?:posso|pode|podemos|podem) (?:comer|beber|tomar|ajoelhar\w*|levantar|carregar|conduzir|dirigir"
            r"|voar|fumar|baixar\w*|trabalhar)\b(?![^.;!?]*\b(?:hoje|mais|amanhã)\b)",
            "none",
        ),
        RulePattern(
            "constraint",
            0.8,
            "nunca",
            rf"\b{_PT_DAY},? (?:nunca|jamais)\b|\b(?:nunca|jamais) (?:{_PT_DAY}\b|antes das|depois das)",
        ),
        RulePattern("constraint", 0.5, "só apenas", rf"\b(?:só|apenas) {_PT_DAY}\s*(?:[,.;!)]|$)", "none"),
        RulePattern(
            "constraint",
            0.5,
            "máximo tardar mais",
            r"\b(?:no máximo|até no máximo|o mais tardar|não mais de|não mais que)\b[^.;:!?]{0,10}\d"
            r"|\d[^.;:!?]{0,30}\b(?:no máximo|o mais tardar|nem mais)\b",
            "clause",
        ),
        RulePattern(
            "constraint",
            0.6,
            "limite máximo teto orçamento",
            r"\b(?:o )?(?:meu|nosso) (?:limite|máximo|teto|orçamento) (?:é|está)\b",
            "none",
        ),
    ),
)
