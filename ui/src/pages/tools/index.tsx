/** A placeholder until the page is there. */
export default function Tools() {
  return (
    <div class="page">
      <h1>Tools</h1>
      <p class="lead">This page is not built yet.</p>
    </div>
  );
}
