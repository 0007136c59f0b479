import Testing
import Wire

@testable import PushEmulator

/// Firebase installation ids as targets: an app is registered by its token or by its id.
@Suite("An FCM installation id")
struct FCMInstallationIDTests {
  @Test("is the target of a device that is registered by it, as 'fid' and for now as 'token'")
  func registeredByID() async throws {
    try await FCMScene.run(["registration": "fid"]) { scene in
      let fid = try #require(scene.device["handle"]?["fid"]?.text)
      #expect(scene.device["handle"]?["registered"]?.text == "fid")
      #expect(FCMToken.isInstallationID(fid) && scene.token.isEmpty)
      for member in ["fid", "token"] {
        let reply = await scene.send(scene.to(member, fid, text: member))
        #expect(reply.status == 200)
      }
      #expect(try await scene.texts() == ["fid", "token"])
    }
  }

  @Test("is no target while the device is registered by its token, and a token is none as 'fid'")
  func registeredByToken() async throws {
    try await FCMScene.run { scene in
      let fid = try #require(scene.device["handle"]?["fid"]?.text)
      #expect(scene.token.hasPrefix(fid + ":"))
      for (member, value) in [("fid", fid), ("token", fid), ("fid", scene.token)] {
        let reply = await scene.send(scene.to(member, value))
        #expect(reply.status == 404 && reply.fcmError == "UNREGISTERED", "\(member) \(value)")
      }
      #expect(await scene.send(scene.to("token", scene.token)).status == 200)
    }
  }

  @Test("takes the place of the token when the app registers by it, and comes back as it was")
  func registering() async throws {
    try await FCMScene.run { scene in
      let path = "/v1/devices/\(scene.device["deviceId"]?.text ?? "")"
      let byID = try await scene.harness.control("POST", path + "/register", ["by": "fid"])
      let fid = try #require(byID["handle"]?["fid"]?.text)
      #expect(await scene.send(scene.to("token", scene.token)).fcmError == "UNREGISTERED")
      #expect(await scene.send(scene.to("fid", fid)).status == 200)

      let byToken = try await scene.harness.control("POST", path + "/register", ["by": "token"])
      let token = try #require(byToken["handle"]?["token"]?.text)
      #expect(token.hasPrefix(fid + ":") && token != scene.token)
      #expect(await scene.send(scene.to("fid", fid)).fcmError == "UNREGISTERED")
      #expect(await scene.send(scene.to("token", token)).status == 200)

      try await scene.harness.control("POST", path + "/register", ["by": "fid"])
      try await scene.harness.control("POST", path + "/unregister")
      #expect(await scene.send(scene.to("fid", fid)).fcmError == "UNREGISTERED")
      try await scene.harness.control("POST", path + "/register", ["by": "fid"])
      #expect(await scene.send(scene.to("fid", fid)).status == 200)

      let rotated = try await scene.harness.control("POST", path + "/rotate")
      let next = try #require(rotated["handle"]?["fid"]?.text)
      #expect(next != fid && rotated["handle"]?["registered"]?.text == "fid")
      #expect(await scene.send(scene.to("fid", next)).status == 200)
    }
  }

  @Test(
    "that is malformed, or comes with another target, is refused",
    arguments: [
      (["fid": "a b"], "message.fid"),
      (["fid": .string(String(repeating: "c", count: 257))], "message.fid"),
      (["fid": ""], "message.fid"), (["fid": 7], "message.fid"),
      (["fid": "cAAAAAAAAAAAAAAAAAAAAA", "topic": "news"], "message"),
      (["fid": "cAAAAAAAAAAAAAAAAAAAAA", "token": "x"], "message"),
    ] as [(JSONValue, String)])
  func malformed(target: JSONValue, field: String) async throws {
    try await FCMScene.run { scene in
      let reply = await scene.send(["message": target])
      #expect(reply.status == 400 && reply.fields == [field])
      let unknown = await scene.send(scene.to("fid", "cAAAAAAAAAAAAAAAAAAAAA"))
      #expect(unknown.fcmError == "UNREGISTERED")
    }
  }

  @Test("can be chosen for a device, if it has the form of one")
  func fixed() async throws {
    try await FCMScene.run(["handle": ["fid": "dAAAAAAAAAAAAAAAAAAAAA"]]) { scene in
      #expect(await scene.send(scene.to("fid", "dAAAAAAAAAAAAAAAAAAAAA")).status == 200)
      let app = scene.app["appId"] ?? .null
      for wrong: JSONValue in [
        ["appId": app, "handle": ["fid": "zAAAAAAAAAAAAAAAAAAAAA"]],
        ["appId": app, "handle": ["token": "dAAAAAAAAAAAAAAAAAAAAB"]],
        ["appId": app, "registration": "token", "handle": ["fid": "dAAAAAAAAAAAAAAAAAAAAC"]],
        ["appId": app, "registration": "id"],
      ] {
        let reply = try await scene.harness.server.control(
          "POST", "/v1/devices", body: String(decoding: wrong.jsonBytes, as: UTF8.self))
        #expect(reply.status == 400)
      }
    }
  }
}

extension FCMScene {
  fileprivate func to(_ member: String, _ handle: String, text: String = "") -> JSONValue {
    [
      "message": .object([
        .init(member, .string(handle)),
        .init("data", ["text": .string(text)]),
      ])
    ]
  }
}
