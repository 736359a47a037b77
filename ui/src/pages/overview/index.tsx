/** A placeholder until the page is there. */
export default function Overview() {
  return (
    <div class="page">
      <h1>Overview</h1>
      <p class="lead">This page is not built yet.</p>
    </div>
  );
}
