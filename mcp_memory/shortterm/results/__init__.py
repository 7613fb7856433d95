"""Tool results: kept whole on their way in, opened again on the way down.

offload   a result on its way in: ref, record, canvas     records   a call in words: its line, title, summary
stand_in  what is read in a result's place                chunks    results cut for the search
drill     the way down: records, then raw text            expand    parts of a raw text (`_json`, `_views`)
"""
