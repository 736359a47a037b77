/** A placeholder until the page is there. */
export default function Clients() {
  return (
    <div class="page">
      <h1>Clients</h1>
      <p class="lead">This page is not built yet.</p>
    </div>
  );
}
