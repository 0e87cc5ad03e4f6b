const kept = localStorage.getItem("parley-theme") ?? "system";
let theme = $state(kept);

function apply(): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
apply();

export const look = {
  get theme() {
    return theme;
  },
  set theme(value: string) {
    theme = value;
    localStorage.setItem("parley-theme", value);
    apply();
  },
};
