"use strict";
/* The player. All sounds play at the same time, in step, each through a gain of its own; switching crossfades the gains
 * in 10 ms, so that the sound continues where it was, without a gap. */
const FADE = 0.01;

/* Connects the sounds to a context (which may be an OfflineAudioContext) and starts them. */
function buildGraph(context, buffers, when, offset) {
    const gains = buffers.map(() => new GainNode(context, { gain: 0 }));
    const sources = buffers.map((buffer, i) => {
        const source = new AudioBufferSourceNode(context, { buffer, loop: true });
        source.connect(gains[i]).connect(context.destination);
        source.start(when, offset);
        return source;
    });
    const levels = buffers.map(() => 0);
    return {
        /* Makes sound `index` audible at a time, with a gain; all others become silent. */
        select(index, gain, at) {
            gains.forEach((node, i) => {
                const level = i === index ? gain : 0;
                node.gain.cancelScheduledValues(at);
                node.gain.setValueAtTime(levels[i], at);
                node.gain.linearRampToValueAtTime(level, at + FADE);
                levels[i] = level;
            });
        },
        stop() {
            sources.forEach((source) => source.stop());
            gains.forEach((node) => node.disconnect());
        },
    };
}

/* Decodes the sounds of the page into buffers of equal length. */
async function decodeSounds(context) {
    const decoded = await Promise.all([...document.querySelectorAll("script.sound")].map((element) => {
        const text = atob(element.textContent.trim()), bytes = new Uint8Array(text.length);
        for (let i = 0; i < text.length; i++)
            bytes[i] = text.charCodeAt(i);
        return context.decodeAudioData(bytes.buffer);
    }));
    const frames = Math.max(...decoded.map((buffer) => buffer.length));
    return decoded.map((buffer) => {
        const padded = context.createBuffer(buffer.numberOfChannels, frames, buffer.sampleRate);
        for (let c = 0; c < buffer.numberOfChannels; c++)
            padded.copyToChannel(buffer.getChannelData(c), c);
        return padded;
    });
}

const player = {
    context: null, graph: null, buffers: [], selected: 0, position: 0, started: 0,
    buttons: [...document.querySelectorAll("button.track")],
    play: document.getElementById("play"), seek: document.getElementById("seek"),
    equal: document.getElementById("equal"), output: document.getElementById("position"),

    seconds() { return this.buffers.length ? this.buffers[0].duration : 0; },
    now() {
        const at = this.graph ? this.position + this.context.currentTime - this.started : this.position;
        return this.seconds() ? Math.max(0, at) % this.seconds() : 0;
    },
    gain(index) { return this.equal.checked ? Number(this.buttons[index].dataset.equal) : 1; },
    choose(index) {
        if (index >= this.buttons.length)
            return;
        this.selected = index;
        this.buttons.forEach((button, i) => {
            button.classList.toggle("on", i === index);
            button.setAttribute("aria-pressed", i === index);
        });
        if (this.graph)
            this.graph.select(index, this.gain(index), this.context.currentTime);
    },
    start(position) {
        this.started = this.context.currentTime + 0.02;
        this.position = position;
        this.graph = buildGraph(this.context, this.buffers, this.started, position);
        this.graph.select(this.selected, this.gain(this.selected), this.context.currentTime);
    },
    pause() {
        this.position = this.now();
        this.graph.stop();
        this.graph = null;
    },
    async toggle() {
        await this.context.resume();
        if (this.graph)
            this.pause();
        else
            this.start(this.position);
        this.play.textContent = this.graph ? "pause" : "play";
    },
    jump(position) {
        const playing = this.graph !== null;
        if (playing)
            this.pause();
        this.position = position;
        if (playing)
            this.start(position);
    },
    show() {
        if (this.seconds()) {
            this.seek.value = 1000 * this.now() / this.seconds();
            this.output.textContent = `${this.now().toFixed(1)} of ${this.seconds().toFixed(1)} s`;
        }
        requestAnimationFrame(() => this.show());
    },
    async load() {
        const sound = document.querySelector("script.sound");
        if (!sound) {
            this.play.textContent = "no sound";
            return;
        }
        const head = atob(sound.textContent.trim().slice(0, 48));
        const byte = (i) => head.charCodeAt(i), rate = byte(24) | byte(25) << 8 | byte(26) << 16;
        try {
            this.context = new AudioContext({ sampleRate: rate });
        } catch (refused) { /* a rate that this browser does not support */
            this.context = new AudioContext();
        }
        try {
            this.buffers = await decodeSounds(this.context);
        } catch (error) {
            this.play.textContent = "this browser cannot decode the sounds";
            return;
        }
        this.play.disabled = false;
        this.play.textContent = "play";
        document.body.dataset.loaded = this.buffers.length;
    },
};

player.buttons.forEach((button, i) => button.addEventListener("click", () => player.choose(i)));
player.play.addEventListener("click", () => player.toggle());
player.equal.addEventListener("change", () => player.choose(player.selected));
player.seek.addEventListener("input", () => player.jump(player.seek.value / 1000 * player.seconds()));
document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || player.play.disabled)
        return;
    if (event.key >= "1" && event.key <= "9") {
        player.choose(Number(event.key) - 1);
    } else if (event.key === " " && event.target.tagName !== "BUTTON") {
        event.preventDefault();
        player.toggle();
    } else if (event.key === "e") {
        player.equal.checked = !player.equal.checked;
        player.choose(player.selected);
    }
});
player.choose(0);
player.load();
player.show();
