/* Light and dark: what the system says, until the button says otherwise; kept in this browser. */
(function () {
  "use strict";
  const KEY = "c3prof-theme", root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");

  function kept() { try { return window.localStorage.getItem(KEY); } catch { return null; } }

  function apply() {
    const theme = kept() || (system.matches ? "dark" : "light");
    root.dataset.theme = theme;
    root.dataset.agThemeMode = theme;
    if (document.body) document.body.dataset.agThemeMode = theme;
  }

  system.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", apply);
  document.addEventListener("click", (event) => {
    if (!event.target.closest || !event.target.closest("#theme")) return;
    try { window.localStorage.setItem(KEY, root.dataset.theme === "dark" ? "light" : "dark"); } catch { return; }
    apply();
  });
  document.documentElement.lang = "en";
  apply();
})();
