import Foundation
import NotificationHubs
import PushDeviceTesting
import Testing

@testable import PushDevice

@Suite("The notification service extension")
struct ServiceExtensionTests {
  struct Opener: MessageOpening {
    var opened: NotificationText?
    var fetched: NotificationText?
    func open(_ message: PushMessage) -> NotificationText? { opened }
    func fetch(_ message: PushMessage) async -> NotificationText? { fetched }
    func isSealed(_ message: PushMessage) -> Bool { message.notificationID != nil }
  }

  /// Images that never come; the clock runs on meanwhile.
  struct SlowImages: ImageFetching {
    let clock: ManualDeviceClock
    func fetch(_ url: URL) async throws -> URL {
      await clock.advance(by: .seconds(60))
      try await Task.sleep(for: .seconds(3_600))
      return url
    }
  }

  struct Images: ImageFetching {
    var file: URL?
    func fetch(_ url: URL) async throws -> URL {
      guard let file else { throw ImageError.unknownKind }
      return file
    }
  }

  private let original = NotificationText(body: "You have a message")
  private func message(_ json: String) throws -> PushMessage {
    try #require(PushMessage(json: Data(json.utf8)))
  }

  @Test("a sealed payload is opened, and an image that takes a minute is left out")
  func slowImage() async throws {
    let clock = ManualDeviceClock()
    let work = ServiceExtensionWork(
      opener: Opener(opened: NotificationText(body: "Secret")), images: SlowImages(clock: clock),
      clock: clock)
    let content = await work.content(
      for: try message(#"{"notificationId":"1","image":"https://example.com/a.png"}"#),
      showing: original)
    #expect(content == EnrichedContent(text: NotificationText(body: "Secret"), image: nil))
  }

  @Test("text comes from the device, else from the backend, else it is general")
  func texts() async throws {
    let secret = NotificationText(body: "Secret")
    let sealed = try message(#"{"notificationId":"1"}"#)
    for (opener, expected) in [
      (Opener(opened: secret), secret), (Opener(fetched: secret), secret),
      (Opener(), NotificationText(body: "General")),
    ] {
      let work = ServiceExtensionWork(opener: opener, generalText: "General")
      #expect(await work.content(for: sealed, showing: original).text == expected)
    }
    let plain = NotificationText(title: "Tea")
    let work = ServiceExtensionWork(opener: Opener())
    #expect(await work.content(for: try message("{}"), showing: plain).text == plain)
  }

  @Test("an image that is not available leaves the text")
  func images() async throws {
    let push = try message(#"{"image":"https://example.com/a.png"}"#)
    let file = URL(filePath: "/tmp/a.png")
    for images in [Images(), Images(file: file)] {
      let work = ServiceExtensionWork(images: images)
      let content = await work.content(for: push, showing: original)
      #expect(content == EnrichedContent(text: original, image: images.file))
    }
  }

  @Test("a push for another user, or while nobody can tell who is signed in, shows a general text")
  func otherUser() async throws {
    let device = TestDevice()
    try await device.process().signIn(as: "anna")
    let work = ServiceExtensionWork(storage: device.storage, generalText: "General")
    let text = NotificationText(title: "For you")
    let forAnna = try message(#"{"user":"anna"}"#)
    #expect(await work.content(for: forAnna, showing: text).text == text)
    let forBob = try message(#"{"user":"bob"}"#)
    let hidden = await work.content(for: forBob, showing: text)
    #expect(hidden.text == NotificationText(body: "General"))
    #expect(hidden.hidesPayload && hidden.userInfo == ["user": "bob"])
    device.storage.error = .locked
    #expect(await work.content(for: forAnna, showing: text).text.body == "General")
  }

  @Test("the handler is called once, with the first content, in any order")
  func once() {
    let calls = Locked<[Int]>([])
    let early = Once<Int>()
    early.call(1)
    early.receive { value in calls.withLock { $0.append(value) } }
    early.call(2)
    let late = Once<Int>()
    late.receive { value in calls.withLock { $0.append(value) } }
    late.call(3)
    late.call(4)
    #expect(calls.withLock { $0 } == [1, 3])
  }

  /// Sends a body in pieces.
  struct Server: StreamingTransport {
    var status = 200
    var pieces: [Data]
    func send(_ request: TransportRequest) async throws -> TransportReply {
      TransportReply(status: status)
    }
    func stream(
      _ request: TransportRequest, _ receive: @escaping @Sendable (Data) throws -> Void
    ) async throws -> TransportReply {
      for piece in pieces where status == 200 { try receive(piece) }
      return TransportReply(status: status)
    }
  }

  @Test(
    "an image's kind is told by its first bytes, in pieces too",
    arguments: [
      ([0xFF, 0xD8, 0xFF, 0xE0], "jpeg"), (Array("GIF89a".utf8), "gif"),
      ([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0], "png"),
    ] as [([UInt8], String)])
  func imageKinds(bytes: [UInt8], name: String) async throws {
    let url = try #require(URL(string: "https://example.com/picture.txt"))
    let file = try await ImageDownload(transport: Server(pieces: bytes.map { Data([$0]) }))
      .fetch(url)
    defer { try? FileManager.default.removeItem(at: file) }
    #expect(file.pathExtension == name)
    #expect(try Data(contentsOf: file) == Data(bytes))
  }

  @Test("what is no image, too large, or not there leaves no file behind")
  func noImages() async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let url = try #require(URL(string: "https://example.com/a.png"))
    let megabyte = Data(repeating: 0xFF, count: 1 << 20)
    for (server, error) in [
      (Server(pieces: [Data("<html>".utf8)]), ImageError.unknownKind),
      (Server(pieces: []), .unknownKind),
      (Server(pieces: Array(repeating: megabyte, count: 11)), .tooLarge),
      (Server(status: 404, pieces: []), .status(404)),
    ] {
      await #expect(throws: error) {
        try await ImageDownload(transport: server, directory: directory).fetch(url)
      }
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
  }
}
