//! A panic of one task breaks the store.

use super::*;

#[tokio::test]
async fn after_a_panic_of_a_task_each_call_says_that_the_store_is_broken() {
    let (database, time) = (database(), Time::new());
    let (store, peer) = (open(&database, &time).await, open(&database, &time).await);
    store.desk.tasks.spawn("ends", async {});
    assert!(store.settings().await.is_ok(), "a task may end with its work");
    store.desk.tasks.spawn("injected", async { panic!("by a test") });
    let broken = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            if let Err(error) = store.settings().await {
                return error;
            }
        }
    });
    let told = broken.await.unwrap().to_string();
    assert!(told.contains("the store broke") && told.contains("`injected`"), "{told}");
    assert!(told.contains("by a test"), "{told}");
    let length = Millis::from_secs(1);
    let calls: [Option<Error>; 4] = [
        store.submit(submission("a", "kind", 1)).await.err(),
        store.claim(vec![claim(&JobId::number(1), "w")]).await.err(),
        store.lead("lane".to_owned(), "me".to_owned(), length).await.err(),
        store.usage(time.now()).await.err(),
    ];
    for error in calls {
        assert!(matches!(error, Some(Error::Broken { .. })), "{error:?}");
    }
    submit(&peer, submission("a", "kind", 1)).await;
}
