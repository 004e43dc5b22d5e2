use crate::world::World;

#[tokio::test]
async fn every_statement_can_be_prepared() {
    let w = World::new().await;
    let count = w.store.check_statements().await.unwrap();
    assert!(count > 50, "{count}");
    w.end().await;
}
