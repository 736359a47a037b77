/** A placeholder until the page is there. */
export default function Settings() {
  return (
    <div class="page">
      <h1>Settings</h1>
      <p class="lead">This page is not built yet.</p>
    </div>
  );
}
