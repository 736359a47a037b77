/** A placeholder until the page is there. */
export default function Servers() {
  return (
    <div class="page">
      <h1>Servers</h1>
      <p class="lead">This page is not built yet.</p>
    </div>
  );
}
