"""The chapters: what serves one of them alone, a folder for each.

    questions/NAME.md     the words of what a part asks; questions/exercises.md of the chapter's exercises
    questions/NAME.py     what of these is code: solutions, inputs, wrong functions that no edit makes
    figures.py            its figures; NAME_figures.py: those of one subject
    NAME_explorer.py      a widget
    NAME.py               a model or a data set
    experiments/NAME.py   what is trained or measured, with its recipe; results/NAME.json what came out

A chapter imports what is shared, and never another chapter. What it uses besides attention itself, checks,
claims, devices and the two kinds of charts that all have (tests/test_floors.py holds this list):

    c00_start_here          chapters.c06_transformer.experiments.translation, cli.doctor, masks
    c01_history             charts.alignment, data.dates, data.digits, data.milestones, data.tagging,
                            experiments.dates, masks, models.tagger, models.translator, recurrent, scores
    c02_scoring             charts.devices, charts.matrices, experiments.devices, measure, scores, trace
    c03_matrix_form         charts.devices, charts.matrices, experiments.devices, masks, measure, scores
    c04_multi_head          heads, masks, positions, scores, widgets.heads
    c05_positional_encoding charts.grid, data.digits, heads, masks, positions, scores
    c06_transformer         blocks, data.dates, data.tagging, data.topics, experiments.dates, experiments.gpt,
                            heads, masks, models.gpt, models.tagger, models.translator, norms, positions,
                            scores, widgets.machine
    c07_attention_vs_cnn    blocks, convolution, data.digits, data.milestones, heads, positions, scores
    c08_attention_vs_rnn    charts.devices, data.recall, experiments.costs, experiments.recall, heads, linear,
                            masks, measure, models.recaller, recurrent
    c09_truncated_attention blocks, charts.devices, experiments.lengths, experiments.recall, masks, measure,
                            models.recaller, positions, truncated
    c10_graph_attention     charts.devices, experiments.devices, graphs, masks, measure, scores
    c11_efficient_attention blocks, charts.devices, data.digits, data.recall, data.topics, efficient,
                            experiments.devices, experiments.gpt, graphs, heads, linear, masks, measure,
                            models.gpt, ring, truncated
    c12_claims              masks, scores, trace
    c13_todays_models       data.topics, heads, masks, models.pretrained, models.pretrained.characters,
                            models.pretrained.described, models.pretrained.inside, positions, scores,
                            widgets.heads, widgets.machine
    c14_capstone            data.dates, experiments.dates, models.pretrained, models.translator
"""
