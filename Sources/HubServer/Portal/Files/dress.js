// @ts-check
// Styles that only some pages need: loaded with the first of these, so that other pages need not wait.

/** @param {string} name of a file beside this one */
export function dress(name) {
  if (document.getElementById(name)) return;
  const link = document.createElement('link');
  Object.assign(link, { id: name, rel: 'stylesheet', href: `/$portal/${name}` });
  document.head.append(link);
}
