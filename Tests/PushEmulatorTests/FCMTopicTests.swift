import Foundation
import Testing
import Wire

@testable import PushEmulator

/// Topics and conditions of FCM: who is subscribed, and whom a message reaches.
@Suite("FCM topics", .timeLimit(.minutes(5)))
struct FCMTopicTests {
  // MARK: Conditions

  @Test(
    "a condition is true by its operators, from left to right",
    arguments: [
      ("'a' in topics", ["a": true, "b": false, "": false]),
      ("'a' in topics && 'b' in topics", ["a": false, "ab": true]),
      ("'a' in topics || 'b' in topics && 'c' in topics", ["a": false, "ac": true, "bc": true]),
      ("'a' in topics || ('b' in topics && 'c' in topics)", ["a": true, "b": false, "bc": true]),
      ("!('a' in topics)", ["": true, "a": false, "b": true]),
      ("!'a' in topics&&!!'b' in topics", ["b": true, "ab": false]),
      (" ( \"a\"  in   topics ) ", ["a": true]),
    ] as [(String, [String: Bool])])
  func condition(text: String, cases: [String: Bool]) throws {
    let condition = try #require(FCMCondition(text))
    for (topics, isTrue) in cases {
      #expect(condition.isTrue { topics.contains($0) } == isTrue, "\(topics)")
    }
  }

  @Test(
    "a condition that FCM would not take is none",
    arguments: [
      "", "a in topics", "'a'", "'a' in topic", "'a in topics", "'a' in topics &&",
      "'a' in topics & 'b' in topics", "('a' in topics", "'a' in topics)", "'/topics/a' in topics",
      "'' in topics", "' a' in topics",
      (1...6).map { "'t\($0)' in topics" }.joined(separator: " || "),
      String(repeating: "(", count: 5000) + "'a' in topics",
      String(repeating: "!", count: 5000) + "'a' in topics",
    ])
  func noCondition(text: String) {
    #expect(FCMCondition(text) == nil)
  }

  // MARK: Subscriptions

  @Test("a subscription is made, shown, listed and deleted by the v1 API")
  func subscriptions() async throws {
    try await FCMScene.run { scene in
      let path = scene.subscriptions()
      let made = await scene.send(raw: [], path: path + "?topic_name=news")
      #expect(made.status == 200)
      #expect(
        made.json["name"]?.text
          == "projects/demo-project/registrations/\(scene.token)/topicSubscriptions/news")
      #expect(made.json["topic_name"]?.text == "news")
      #expect(made.json["create_time"]?.text == "2023-11-14T22:14:20.000Z")

      let again = await scene.send(raw: [], path: path + "?topic_name=news")
      #expect(again.status == 409 && again.errorStatus == "ALREADY_EXISTS")
      #expect(await scene.send(raw: [], method: "GET", path: path + "/news").status == 200)
      #expect(await scene.send(raw: [], method: "GET", path: path + "/sport").status == 404)
      #expect(
        await scene.send(raw: [], method: "PATCH", path: path + "/sport?allow_missing=true").status
          == 200)

      let page = await scene.send(raw: [], method: "GET", path: path + "?pageSize=1")
      #expect(page.json["topicSubscriptions"]?.items.map { $0["topic_name"]?.text } == ["news"])
      let next = page.json["nextPageToken"]?.text ?? ""
      let rest = await scene.send(raw: [], method: "GET", path: path + "?pageToken=\(next)")
      #expect(rest.json["topicSubscriptions"]?.items.map { $0["topic_name"]?.text } == ["sport"])

      #expect(await scene.send(raw: [], method: "DELETE", path: path + "/news").status == 200)
      #expect(await scene.send(raw: [], method: "DELETE", path: path + "/news").status == 404)
      #expect(
        await scene.send(raw: [], method: "DELETE", path: path + "/news?allow_missing=true").status
          == 200)
    }
  }

  @Test("a subscription needs a credential, a living registration and a topic's name")
  func refusals() async throws {
    try await FCMScene.run { scene in
      let path = scene.subscriptions()
      let unknown = await scene.send(raw: [], bearer: "x", path: path + "?topic_name=news")
      #expect(unknown.status == 401)
      for name in ["", "?topic_name=", "?topic_name=a%2Fb", "?topic_name=%2Ftopics%2Fnews"] {
        let reply = await scene.send(raw: [], path: path + name)
        #expect(reply.status == 400 && reply.fields == ["topic_name"], "\(name)")
      }
      let malformed = scene.subscriptions(of: "no-token") + "?topic_name=news"
      #expect(await scene.send(raw: [], path: malformed).fcmError == "INVALID_ARGUMENT")
      try await scene.harness.control("POST", scene.path + "/unregister")
      let dead = await scene.send(raw: [], path: path + "?topic_name=news")
      #expect(dead.status == 404 && dead.fcmError == "UNREGISTERED")
    }
  }

  @Test("the Instance ID API answers for each token of a batch")
  func batch() async throws {
    try await FCMScene.run(over: .http1) { scene in
      let tokens: JSONValue = [
        .string(scene.token), "no-token",
        .string("cAAAAAAAAAAAAAAAAAAAAA:" + String(repeating: "A", count: 140)),
      ]
      let body: JSONValue = ["to": "/topics/news", "registration_tokens": tokens]
      let headers = [
        ("content-type", "application/json"), ("authorization", "Bearer " + scene.accessToken),
      ]
      let add = "/iid/v1:batchAdd"
      #expect(await scene.client.send("POST", add, headers, body: body.jsonBytes).status == 401)
      let proper = headers + [("access_token_auth", "true")]
      let reply = await scene.client.send("POST", add, proper, body: body.jsonBytes)
      #expect(
        reply.json["results"]
          == [[:], ["error": "INVALID_ARGUMENT"], ["error": "NOT_FOUND"]] as JSONValue)
      var topics = try await scene.topics()
      #expect(topics == ["news"])
      _ = await scene.client.send("POST", "/iid/v1:batchRemove", proper, body: body.jsonBytes)
      topics = try await scene.topics()
      #expect(topics == [])
      for wrong: JSONValue in [["to": "news", "registration_tokens": tokens], ["to": "/topics/a"]] {
        let reply = await scene.client.send("POST", add, proper, body: wrong.jsonBytes)
        #expect(reply.status == 400)
      }
    }
  }

  @Test("an app subscribes by the control API, and its topics are in the state file")
  func control() async throws {
    let directory = try ServerTests.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let options = EmulatorOptions.changed { $0.stateFile = directory + "/emulator.json" }
    try await FCMScene.run([:], options) { scene in
      try await scene.harness.control(
        "POST", scene.path + "/topics", ["subscribe": ["b", "a", "c"], "unsubscribe": ["c"]])
      #expect(try await scene.topics() == ["a", "b"])
      let wrong = try await scene.harness.server.control(
        "POST", scene.path + "/topics", body: #"{"subscribe":["/topics/a"]}"#)
      #expect(wrong.status == 400)
    }
    try await Harness.run(options) { harness in
      let device = try await harness.control("GET", "/v1/devices/dev-1")
      #expect(device["topics"]?.items.compactMap(\.text) == ["a", "b"])
      try await harness.control("POST", "/v1/devices/dev-1/rotate")
      let rotated = try await harness.control("GET", "/v1/devices/dev-1")
      #expect(rotated["topics"]?.items.isEmpty == true)
    }
  }

  // MARK: Delivery

  @Test("a message to a topic or a condition reaches who is subscribed, by token or by id")
  func delivery() async throws {
    try await FCMScene.run { scene in
      let app = scene.app["appId"] ?? .null
      var paths = [scene.path]
      for registration in ["token", "fid", "token"] {
        let made = try await scene.harness.control(
          "POST", "/v1/devices", ["appId": app, "registration": .string(registration)])
        paths.append("/v1/devices/\(made["devices"]?.items.first?["deviceId"]?.text ?? "")")
      }
      for (path, topics) in zip(paths, [["a"], ["a", "b"], ["b"], []]) where !topics.isEmpty {
        try await scene.harness.control(
          "POST", path + "/topics", ["subscribe": .array(topics.map(JSONValue.string))])
      }
      let cases: [(target: JSONValue, reached: [Int])] = [
        (["topic": "a"], [0, 1]), (["topic": "none"], []),
        (["condition": "'a' in topics && 'b' in topics"], [1]),
        (["condition": "!('b' in topics)"], [0, 3]),
      ]
      for (number, (target, reached)) in cases.enumerated() {
        let text = JSONValue.string("\(number)")
        let reply = await scene.send(["message": target.setting(["data": ["text": text]])])
        #expect(reply.status == 200)
        let last = try await scene.harness.lastRequest()
        #expect(last["recipients"] == JSONValue(reached.count))
        for (index, path) in paths.enumerated() {
          let shown = try await scene.harness.control("GET", path + "/notifications")
          let got = (shown["notifications"]?.items ?? []).filter {
            $0.at("payload", "data", "text") == text
          }
          #expect(got.count == (reached.contains(index) ? 1 : 0), "\(target) \(index)")
          if let name = target["topic"]?.text, let one = got.first {
            #expect(one.at("headers", "from").text == "/topics/" + name)
          }
        }
      }
    }
  }

  @Test("a device that is unregistered, or of another project, is not reached")
  func notReached() async throws {
    try await FCMScene.run { scene in
      try await scene.harness.control("POST", scene.path + "/topics", ["subscribe": ["a"]])
      let other = try await scene.harness.control(
        "POST", "/v1/apps", ["pns": "fcm", "projectId": "other"])
      let made = try await scene.harness.control(
        "POST", "/v1/devices", ["appId": other["appId"] ?? .null])
      let id = made["devices"]?.items.first?["deviceId"]?.text ?? ""
      try await scene.harness.control("POST", "/v1/devices/\(id)/topics", ["subscribe": ["a"]])
      try await scene.harness.control("POST", scene.path + "/unregister")
      for target: JSONValue in [["topic": "a"], ["condition": "!('x' in topics)"]] {
        #expect(await scene.send(["message": target]).status == 200)
        #expect(try await scene.harness.lastRequest()["recipients"] == 0)
      }
    }
  }

  @Test(
    "a target that is none, or a message too big for topics, is refused",
    arguments: [
      ["topic": "/topics/a"], ["topic": "a b"], ["condition": "'a' in topics &&"],
      ["topic": "a", "data": ["x": .string(String(repeating: "x", count: 2048))]],
    ] as [JSONValue])
  func refused(message: JSONValue) async throws {
    try await FCMScene.run { scene in
      let reply = await scene.send(["message": message])
      #expect(reply.status == 400 && reply.fcmError == "INVALID_ARGUMENT")
    }
  }
}

extension FCMScene {
  fileprivate var path: String { "/v1/devices/\(device["deviceId"]?.text ?? "")" }

  fileprivate func subscriptions(of handle: String? = nil) -> String {
    "/v1/projects/demo-project/registrations/\(handle ?? token)/topicSubscriptions"
  }

  fileprivate func topics() async throws -> [String] {
    try await harness.control("GET", path)["topics"]?.items.compactMap(\.text) ?? []
  }
}
