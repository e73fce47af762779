// Follows the system's choice of light or dark, which Debian's style sheet of Furo does not.
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => { document.body.dataset.theme = dark.matches ? "dark" : "light"; };
dark.addEventListener("change", follow);
follow();
