import Foundation
import Testing
import Wire

@testable import PushEmulator

/// docs/protocol/emulator.md, section 2.3, over a real socket.
@Suite(.timeLimit(.minutes(5))) struct EventStreamTests {
  private struct Scene: Sendable {
    let harness: Harness
    let app: EmulatorServer.App
    let client: Client
    let jwt: String

    func push(_ token: String, _ text: String, _ headers: [(String, String)] = []) async throws {
      let reply = try await client.push(
        to: token, app, jwt: jwt, headers, body: #"{"aps":{"alert":"\#(text)"}}"#)
      #expect(reply.status == 200)
    }

    func open(
      _ path: String, headers: [String: String] = [:]
    ) throws -> EventReader {
      try EventReader(harness.addresses.control + path, headers: headers)
    }

    func isOnline(_ deviceID: String) async throws -> Bool {
      try await harness.control("GET", "/v1/devices/\(deviceID)")["online"] == true
    }
  }

  private func scene(
    _ options: EmulatorOptions = .changed(), _ body: (Scene) async throws -> Void
  ) async throws {
    try await Harness.run(options) { harness in
      let app = try harness.server.app()
      try await body(
        Scene(
          harness: harness, app: app, client: harness.connect(), jwt: Harness.token(app)))
    }
  }

  @Test("a stream shows what happens from now on, with the device's own numbers")
  func live() async throws {
    try await scene { scene in
      let device = try await scene.harness.device(scene.app)
      try await scene.push(device.token, "before")
      let stream = try scene.open("/v1/devices/\(device.deviceID)/events")
      try await stream.untilOpen()
      try await scene.push(device.token, "after")
      let event = try await stream.next()
      #expect(event.name == "notification")
      #expect(event.id == "2")
      #expect(event.data["payload"]?["aps"]?["alert"]?.text == "after")
      stream.close()
    }
  }

  @Test("the journal's stream shows each request to whoever reads it")
  func requests() async throws {
    try await scene { scene in
      let device = try await scene.harness.device(scene.app)
      try await scene.push(device.token, "before")
      let live = try scene.open("/v1/requests/events")
      let whole = try scene.open("/v1/requests/events?after=0")
      try await live.untilOpen()
      #expect(try await whole.next().id == "1")
      try await scene.push(device.token, "after")
      for stream in [live, whole] {
        let event = try await stream.next()
        #expect(event.name == "request" && event.id == "2")
        #expect(event.data["path"]?.text == "/3/device/" + device.token)
        stream.close()
      }
    }
  }

  @Test("history is replayed after a number, from the query or Last-Event-ID")
  func replay() async throws {
    try await scene { scene in
      let device = try await scene.harness.device(scene.app)
      for text in ["one", "two", "three"] { try await scene.push(device.token, text) }
      let all = try scene.open("/v1/devices/\(device.deviceID)/events?after=0")
      for number in 1...3 { #expect(try await all.next().id == String(number)) }
      all.close()
      let rest = try scene.open(
        "/v1/devices/\(device.deviceID)/events", headers: ["Last-Event-ID": "2"])
      let event = try await rest.next()
      #expect(event.id == "3")
      #expect(event.data["payload"]?["aps"]?["alert"]?.text == "three")
      rest.close()
    }
  }

  @Test("only the last thousand events are kept")
  func boundedHistory() async throws {
    try await scene(.changed { $0.eventsPerDevice = 3 }) { scene in
      let device = try await scene.harness.device(scene.app)
      for number in 1...5 { try await scene.push(device.token, String(number)) }
      let stream = try scene.open("/v1/devices/\(device.deviceID)/events?after=0")
      for number in 3...5 { #expect(try await stream.next().id == String(number)) }
      stream.close()
    }
    #expect(EmulatorOptions().eventsPerDevice == 1000)
  }

  @Test("a second stream of a device ends the first")
  func superseded() async throws {
    try await scene { scene in
      let device = try await scene.harness.device(
        scene.app, [.init("presence", "stream")])
      let path = "/v1/devices/\(device.deviceID)/events"
      let first = try scene.open(path + "?after=0")
      #expect(try await first.next().data["state"]?.text == "online")
      let second = try scene.open(path)
      try await second.untilOpen()
      #expect(try await first.next().name == "superseded")
      try await first.untilClosed()
      #expect(try await scene.isOnline(device.deviceID))
      try await scene.push(device.token, "hello")
      #expect(try await second.next().name == "notification")
      second.close()
    }
  }

  @Test("a device that follows its stream is online while the stream is open")
  func presence() async throws {
    try await scene { scene in
      let device = try await scene.harness.device(
        scene.app, [.init("presence", "stream")])
      #expect(try await scene.isOnline(device.deviceID) == false)
      try await scene.push(device.token, "stored")
      let stream = try scene.open("/v1/devices/\(device.deviceID)/events")
      #expect(try await stream.next().data["state"]?.text == "online")
      let event = try await stream.next()
      #expect(event.data["from"]?.text == "store")
      #expect(event.data["payload"]?["aps"]?["alert"]?.text == "stored")
      #expect(try await scene.isOnline(device.deviceID))
      stream.close()
      try await eventually { try await scene.isOnline(device.deviceID) == false }
      let states = try await scene.harness.events(device.deviceID).compactMap {
        $0.data["state"]?.text
      }
      #expect(states == ["online", "offline"])
    }
  }

  @Test("an app's stream shows all its devices under one counter and is their presence")
  func appStream() async throws {
    try await scene { scene in
      let one = try await scene.harness.device(
        scene.app, [.init("presence", "stream")])
      let two = try await scene.harness.device(scene.app)
      try await scene.push(two.token, "early")
      let stream = try scene.open("/v1/apps/\(scene.app.appID)/events?after=0")
      #expect(try await stream.next().data["deviceId"]?.text == two.deviceID)
      #expect(try await stream.next().data["state"]?.text == "online")
      #expect(try await scene.isOnline(one.deviceID))
      try await scene.push(one.token, "a")
      try await scene.push(two.token, "b")
      let first = try await stream.next()
      #expect(first.id == "3")
      #expect(first.data["deviceId"]?.text == one.deviceID)
      #expect(first.data["seq"] == 2)
      let second = try await stream.next()
      #expect(second.id == "4")
      #expect(second.data["deviceId"]?.text == two.deviceID)
      stream.close()
      try await eventually { try await scene.isOnline(one.deviceID) == false }
    }
  }

  @Test("a quiet stream is kept alive by comments")
  func heartbeat() async throws {
    try await scene(.changed { $0.heartbeat = .milliseconds(20) }) { scene in
      let device = try await scene.harness.device(scene.app)
      let stream = try scene.open("/v1/devices/\(device.deviceID)/events")
      try await stream.untilOpen()
      try await eventually { stream.comments >= 3 }
      stream.close()
    }
    #expect(EmulatorOptions().heartbeat == .seconds(15))
  }

  @Test("a reader that does not read is cut off, and what it had in hand waits in the store")
  func slowReader() async throws {
    try await scene(
      .changed { options in
        options.streamStallTimeout = .milliseconds(200)
      }
    ) { scene in
      let device = try await scene.harness.device(
        scene.app, [.init("presence", "stream")])
      let reader = try IdleReader(
        scene.harness.addresses.control, path: "/v1/devices/\(device.deviceID)/events")
      try await eventually { try await scene.isOnline(device.deviceID) }
      // Far more than the sockets' buffers hold.
      try await scene.push(device.token, "opens the streams")
      let body = Array((#"{"aps":""# + String(repeating: "x", count: 4000) + #""}"#).utf8)
      let headers = [
        ("authorization", "bearer " + scene.jwt), ("apns-topic", scene.app.bundleID),
      ]
      let paths = [String](repeating: "/3/device/" + device.token, count: 500)
      try await eventually {
        _ = await scene.client.push(paths: paths, headers, body: body)
        return try await scene.isOnline(device.deviceID) == false
      }
      let stored = try await scene.harness.control(
        "GET", "/v1/devices/\(device.deviceID)/stored")["stored"]?.items
      #expect(stored?.count == 1)
      reader.close()
    }
    #expect(EmulatorOptions().streamStallTimeout == .seconds(5))
  }

  @Test("a stream ends when its device is gone")
  func goneDevice() async throws {
    try await scene { scene in
      let device = try await scene.harness.device(scene.app)
      let stream = try scene.open("/v1/devices/\(device.deviceID)/events")
      try await stream.untilOpen()
      try await scene.harness.control("DELETE", "/v1/apps/\(scene.app.appID)")
      try await stream.untilClosed()
    }
  }
}
