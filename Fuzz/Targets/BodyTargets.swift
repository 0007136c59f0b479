import Foundation
import NotificationHubs
import Wire

extension FuzzTarget {
  /// Every document of the protocol that has Atom round it.
  static let atom = FuzzTarget(name: "atom") { bytes in
    if let registration = try? Registration.decodeRequest(bytes) {
      let again = try? Registration.decodeRequest(Array(registration.requestXML.utf8))
      expect(again == registration, "a registration that was read and written reads the same")
    }
    _ = try? Registration.decodeFeed(bytes)
    if let hub = try? HubDescription.decodeRequest(bytes, name: "hub") {
      let again = try? HubDescription.decodeRequest(Array(hub.requestXML.utf8), name: "hub")
      expect(again == hub, "the description of a hub that was read and written reads the same")
    }
    _ = try? HubListing.decode(bytes)
    _ = try? NotificationHubJob.decodeRequest(bytes)
    _ = try? NotificationHubJob.decodeFeed(bytes)
  }

  static let installation = FuzzTarget(name: "installation") { bytes in
    guard let installation = try? Installation.decodeRequest(Array(bytes), id: "device-1") else {
      return
    }
    let again = try? Installation.decodeRequest(Array(installation.jsonData), id: "device-1")
    expect(again == installation, "an installation that was read and written reads the same")
  }

  /// A patch, applied to a device that has everything a patch can name.
  static let installationPatch = FuzzTarget(name: "patch") { bytes in
    guard let patch = try? InstallationPatch.decode(bytes) else { return }
    let written = patch.jsonData
    expect(
      (try? InstallationPatch.decode(written)) == patch, "a patch that was written reads the same")
    guard let changed = try? patch.applied(to: device) else { return }
    expect(changed.installationID == device.installationID, "a patch leaves the id alone")
    expect(changed.platform == device.platform, "a patch leaves the platform alone")
    expect((try? changed.validated()) != nil, "what a patch makes is a valid installation")
  }

  /// `Content-Type`, NUL, body.
  static let multipart = FuzzTarget(name: "multipart") { bytes in
    let parts = fields(bytes, 2)
    guard let batch = try? DirectBatch(parts[1], contentType: text(parts[0])) else { return }
    expect((1...1000).contains(batch.devices.count), "a batch has 1 to 1000 devices")
    let boundary = "a-boundary-that-no-input-has-5d1f6a"
    let again = try? DirectBatch(
      batch.encoded(boundary: boundary), contentType: "multipart/mixed; boundary=\(boundary)")
    expect(again?.notification == batch.notification, "a batch keeps its notification")
    expect(again?.devices == batch.devices, "a batch keeps its devices")
  }

  /// A first byte that says how the rest is cut, and a stream of server-sent events.
  static let eventStream = FuzzTarget(name: "event-stream") { bytes in
    let stream = Array(bytes.dropFirst())
    var whole = EventStreamParser()
    guard let events = try? whole.feed(stream) else { return }
    let length = max(1, Int(bytes.first ?? 1))
    var pieces = EventStreamParser()
    var found: [StreamedEvent] = []
    for start in stride(from: 0, to: stream.count, by: length) {
      found += (try? pieces.feed(stream[start..<min(start + length, stream.count)])) ?? []
    }
    expect(found == events, "a stream reads the same in whatever pieces it comes")
    var again = EventStreamParser()
    let written = events.map { event in
      (event.id.map { "id: \($0)\n" } ?? "") + "event: \(event.name)\n"
        + event.data.split(separator: "\n", omittingEmptySubsequences: false)
        .map { "data: \($0)\n" }.joined() + "\n"
    }
    let text = Array(written.joined().utf8)
    // A line of its own that ends in a carriage return has lost it when it was read.
    guard !text.contains(13) else { return }
    expect((try? again.feed(text)) == events, "events that were read and written read the same")
  }

  private static let device = Installation(
    installationID: "device-1", userID: "ann", platform: .wns,
    pushChannel: .handle("https://wns.example.com/1"), tags: ["news", "beta"],
    pushVariables: ["lang": "en"],
    templates: [
      "main": PushTemplate(body: "{}", headers: ["X-WNS-Type": "wns/toast"], tags: ["a"])
    ],
    secondaryTiles: [
      "tile": SecondaryTile(
        pushChannel: "https://wns.example.com/2", tags: ["b"],
        templates: ["second": PushTemplate(body: "{}", headers: ["X-WNS-Type": "wns/tile"])])
    ])
}
