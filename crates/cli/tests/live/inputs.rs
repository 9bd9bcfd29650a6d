//! Jobs that read inputs go where the inputs are.

use crate::site::Site;

#[test]
fn a_job_goes_to_the_worker_whose_directory_has_its_inputs_and_says_so() {
    let mut site = Site::serve();
    for (name, digests) in [("w1", &[][..]), ("w2", &["sha256-aa", "sha256-bb=="])] {
        let dir = site.dir.path().join(name);
        std::fs::create_dir(&dir).unwrap();
        for digest in digests {
            std::fs::write(dir.join(digest), "x").unwrap();
        }
        site.work(name, &["--inventory", name]);
    }
    let first = ["submit", "--input", "sha256-aa=900000000", "--input", "sha256-bb===100000000"];
    // What a worker lacks is in the world as soon as it has said what it holds.
    let probe = site.submit(&[&first[1..], &["--need", "gpu=a100", "--", "true"]].concat());
    site.until("both said what they hold", || {
        let world: serde_json::Value = serde_json::from_str(&site.said(&["snapshot"])).unwrap();
        let inputs = &world["jobs"][0]["inputs"];
        let missing = |worker: &str| inputs[worker]["missing_bytes"].as_u64();
        (missing("w1") == Some(1_000_000_000) && missing("w2") == Some(0)).then_some(())
    });
    let id = site.submit(&[&first[1..], &["--wait", "--", "true"]].concat());
    assert_eq!(site.job(&id)["worker"], "w2");
    let told = site.said(&["why", &id]);
    assert!(told.contains("placed on `w2`") && told.contains("missing-bytes 500"), "{told}");
    site.said(&["cancel", &probe]);
}

#[test]
fn an_input_is_a_digest_and_a_number_of_bytes() {
    let site = Site::serve();
    for wrong in ["sha256-aa", "sha256-aa=", "=5", "sha256-aa=-5", "sha256-aa=5MB"] {
        let told = site.refused(&["submit", "--input", wrong, "--", "true"]);
        assert!(told.contains(&format!("`--input {wrong}` is not `DIGEST=BYTES`")), "{told}");
        assert!(told.contains("hint: BYTES is a whole number"), "{told}");
    }
}
