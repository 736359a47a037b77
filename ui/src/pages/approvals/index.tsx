/** A placeholder until the page is there. */
export default function Approvals() {
  return (
    <div class="page">
      <h1>Approvals</h1>
      <p class="lead">This page is not built yet.</p>
    </div>
  );
}
