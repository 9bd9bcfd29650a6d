//! The order of runs with the workers of several schedulers.

use detect::{Step, Turn};
use model::Timestamp;

use crate::lane::Scene;

#[test]
fn scheduler_that_cannot_begin_the_next_type_releases_the_lane() {
    let mut scene = Scene::new(&["balance", "ec", "vacuum"], &["w"]);
    let ec = scene.types.get_mut("ec").unwrap();
    (ec.detectors, ec.is_elsewhere) = (Vec::new(), true);
    scene.settle(0);
    assert_eq!(scene.kind(), "balance");
    scene.lane.detected();
    assert_eq!(scene.settle(0), Step::LetGo(Turn::Elsewhere), "`ec` is next");
    // The peer scheduler ran it.
    scene.lane.began_ms.insert("ec".to_owned(), scene.now);
    "ec".clone_into(&mut scene.lane.last);
    scene.settle(0);
    assert_eq!(scene.kind(), "vacuum");
    scene.lane.ask("ec");
    scene.lane.detected();
    assert_eq!(scene.settle(0), Step::LetGo(Turn::Elsewhere), "a user requested it");
    scene.types.get_mut("ec").unwrap().is_elsewhere = false;
    assert_eq!(scene.settle(0), Step::LetGo(Turn::Wait(Some(Timestamp(1_010_000)))));
}
