// The reader's theme and way of reading, before anything is drawn.
const root = document.documentElement, theme = localStorage.getItem("fairlane-theme");
if (theme === "light" || theme === "dark") root.dataset.theme = theme;
if (localStorage.getItem("fairlane-diff") === "sides") root.dataset.diff = "sides";
root.classList.add("script");
