"""Pictures as SVG elements, made on the server: charts, the timeline of facts, the graph of an entity, canvases."""
