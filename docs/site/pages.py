"""Makes the pages of the site that are computed: sounds before and after, the figures of speed as drawings, and the lab's page.

Usage: pages.py GPUCONV GPULAB SOURCE, from the top of the checkout; SOURCE is the folder that Sphinx reads.
"""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

GPUCONV, GPULAB, SOURCE = sys.argv[1], sys.argv[2], Path(sys.argv[3])
EXTRA = SOURCE / "extra"
# A sound and a response that the command's own page, with a player that switches in place, shows.
PAIRS = [("speech", "cathedral"), ("drums", "studio"), ("strings", "hall-true-stereo")]
HISTOGRAMS = {"real time, stereo": "stereo", "real time, 64 x 64": "64 x 64 matrix", "real time, 8000 channels": "8000 channels"}


def heading(text, line="="):
    return [text, line * len(text), ""]


def raw(html):
    return [".. raw:: html", "", f"   {html}", ""]


def manifest(folder):
    with open(f"{folder}/MANIFEST", encoding="utf-8", newline="") as file:
        return [(Path(row["file"]).stem, row["description"]) for row in csv.DictReader(file, delimiter="\t")]


def player(name):
    return f'<audio controls preload="none" src="sounds/{name}.flac"></audio>'


def sounds():
    """Convolves each sample with each response."""
    folder = EXTRA / "sounds"
    folder.mkdir(parents=True)
    page = heading("Sounds")
    page += ["Each sample before and after convolution with each response of the checkout; all are synthetic. Such a command makes them:", ""]
    page += ["``gpuconv samples/speech.flac impulses/hall.flac out.flac --normalize loudness``", ""]
    for sample, described in manifest("samples"):
        (folder / f"{sample}.flac").write_bytes(Path(f"samples/{sample}.flac").read_bytes())
        page += heading(sample.capitalize(), "-")
        rows = [f"<tr><td><b>before</b>: {described}</td><td>{player(sample)}</td></tr>"]
        for response, text in manifest("impulses"):
            name = f"{sample}-{response}"
            subprocess.run([GPUCONV, f"samples/{sample}.flac", f"impulses/{response}.flac", folder / f"{name}.flac",
                            "--normalize", "loudness", "--quiet"], check=True)
            rows.append(f"<tr><td>{text}</td><td>{player(name)}</td></tr>")
        page += raw(f'<table class="docutils">{"".join(rows)}</table>')
        for response in [response for of, response in PAIRS if of == sample]:
            name = f"{sample}-{response}"
            subprocess.run([GPUCONV, f"samples/{sample}.flac", f"impulses/{response}.flac", folder / f"{name}.flac", "--force",
                            "--normalize", "loudness", "--quiet", "--html", folder / f"{name}.html"], check=True)
            page += raw(f'<p><a href="sounds/{name}.html">Spectrograms and a player that switches between before and after</a></p>')
    (SOURCE / "sounds.rst").write_text("\n".join(page), encoding="utf-8")


def draw(out, title, data, rest):
    """Runs gnuplot. `data` are the lines of the data block $d."""
    block = "\n".join(data)
    script = f"""$d << END
{block}
END
set terminal svg size 900,480 dynamic background 'white' font 'sans,14'
set output '{out}'
set title "{title}"
set grid
{rest}"""
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def draw_peers(record, out):
    """Draws rows of arrays in Python beside CuPy and torchaudio."""
    jobs = {}
    for figure in record["figures"]:
        found = re.fullmatch(r"Python, (.*) with own (.*): forward(?:: (\w+))?", figure["name"])
        if found:
            jobs.setdefault(f"{found[1]}\\nwith own {found[2]}", {})[found[3]] = figure["value"]
    names = (None, "CuPy", "torchaudio")
    data = [" ".join([f'"{job}"'] + [str(of.get(name, "nan")) for name in names]) for job, of in jobs.items()]
    draw(out, f"Signals, each with a response of its own: {record['gpu']}, from Python", data, """set style data histograms
set style fill solid
set logscale y
set yrange [0.01:100]
set bmargin 4
set ylabel 'milliseconds'
plot $d using 2:xtic(1) title 'gpuconv', '' using 3 title 'CuPy', '' using 4 title 'torchaudio'
""")


def draw_realtime(record, out):
    """Draws which share of the blocks took longer than a time."""
    data = []
    for case in HISTOGRAMS:
        counts = sorted((row["up to us"], row["blocks"]) for row in record[case]["block times"])
        left = total = sum(count for _, count in counts)
        data.append(f"{counts[0][0] / 2 ** (1 / 3)} 100")  # buckets of a third of an octave
        for time, count in counts:
            left -= count
            data.append(f"{time} {100 * left / total if left else 'nan'}")
        data += ["", ""]
    plots = ", ".join(f"$d index {i} with linespoints lw 2 pt 7 ps 0.5 title '{name}'" for i, name in enumerate(HISTOGRAMS.values()))
    draw(out, f"Real time, blocks of 128 frames at 48 kHz: {record['gpu']}", data, f"""set logscale xy
set xlabel 'microseconds; the deadline is 2667'
set ylabel '% of the blocks that take longer'
set xrange [15:3000]
set datafile missing 'nan'
plot {plots}
""")


def figures():
    """Draws the records of the engine."""
    page = heading("Figures of speed")
    page += ["Drawn from the records of the GPU tests, ``tests/gpu/*.json``. :doc:`docs/speed` says how they were measured.", ""]
    (SOURCE / "figures").mkdir()
    for path in sorted(Path("tests/gpu").glob("*.json")):
        if path.stem.endswith("-lab"):
            continue
        record = json.loads(path.read_text(encoding="utf-8"))
        page += heading(record["gpu"], "-")
        images = [f"figures/{path.stem}-{kind}.svg" for kind in ("lengths", "peers", "realtime")]
        subprocess.run(["docs/draw-lengths", path, SOURCE / images[0]], check=True)
        draw_peers(record, SOURCE / images[1])
        draw_realtime(record, SOURCE / images[2])
        for image, text in zip(images, ("time against the length of the response", "rows beside CuPy and torchaudio", "times of blocks")):
            page += [f".. image:: {image}", f"   :alt: {record['gpu']}: {text}", ""]
    (SOURCE / "figures.rst").write_text("\n".join(page), encoding="utf-8")


def lab():
    """Makes gpulab's page of each record of the lab."""
    page = heading("The lab")
    page += ["``gpulab`` explains, checks and measures kernels of CUDA courses; :doc:`the manual <docs/manual>` has its commands.", ""]
    for path in sorted(Path("tests/gpu").glob("*-lab.json")):
        gpu = json.loads(path.read_text(encoding="utf-8"))["device"]["name"]
        subprocess.run([GPULAB, "report", "--from", path, "--html", EXTRA / f"{path.stem}.html"], check=True, stdout=subprocess.DEVNULL)
        page += raw(f'<p><a href="{path.stem}.html">The ladders, the sweeps and the roofline of an {gpu}</a>, one page by gpulab</p>')
    (SOURCE / "lab.rst").write_text("\n".join(page), encoding="utf-8")


EXTRA.mkdir()
lab()
figures()
sounds()
