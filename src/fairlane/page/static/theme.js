// The reader's theme, before anything is drawn.
const theme = localStorage.getItem("fairlane-theme");
if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
