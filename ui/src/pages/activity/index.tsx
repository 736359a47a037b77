/** A placeholder until the page is there. */
export default function Activity() {
  return (
    <div class="page">
      <h1>Activity</h1>
      <p class="lead">This page is not built yet.</p>
    </div>
  );
}
