import Foundation
import HTTPServer
import HubCore
import HubServer
import HubTesting
import NotificationHubs
import Testing

@Suite("Jobs", .timeLimit(.minutes(5)))
struct JobTests {
  @Test("what is exported and imported again is the same")
  func roundTrip() async throws {
    try await withHub { hub in
      let world = try await JobWorld(store: hub.store, isNew: false)
      for number in 0..<200 {
        _ = try await hub.service.registrations.create(
          hub: world.address, JobWorld.registration(number))
      }
      let before = try await world.registrations()
      let export = try await world.run(.exportRegistrations)
      #expect(export.status == .completed, "\(export.failure ?? "")")
      #expect(export.progress == 100)
      let path = try #require(export.outputFile)
      #expect(path == "belfry//hub1/\(export.id)/Output.txt")
      #expect(export.failedFile == "belfry//hub1/\(export.id)/Failed.txt")
      #expect(try world.result(path).split(separator: "\n").count == 200)
      for kind in [
        NotificationHubJob.Kind.importDeleteRegistrations, .importCreateRegistrations,
        .importUpsertRegistrations, .importUpdateRegistrations,
      ] {
        let job = try await world.run(kind, input: "\(world.container)/\(path)")
        #expect(job.status == .completed, "\(job.failure ?? "")")
        // The etags in the file are those of before, which upserts have raised.
        let isStale = kind == .importUpdateRegistrations
        #expect(job.checkpoint.failedLines == (isStale ? 200 : 0))
        let after = try await world.registrations().mapValues { one in
          var one = one
          one.etag = "1"
          return one
        }
        #expect(after == (kind == .importDeleteRegistrations ? [:] : before))
      }
      try await world.end()
    }
  }

  static let apple =
    "<AppleRegistrationDescription xmlns=\"\(WireName.connectNamespace)\">ID"
    + "<DeviceToken>\(JobWorld.token)</DeviceToken></AppleRegistrationDescription>"
  static func line(_ id: String?, tags: String = "") -> String {
    apple.replacing(
      "ID", with: (id.map { "<RegistrationId>\($0)</RegistrationId>" } ?? "") + tags)
  }

  @Test("each line has its result, and those that fail can be imported again")
  func results() async throws {
    let world = try await JobWorld { $0.maximumLine = 2000 }
    let bad = line("x", tags: "<Tags>$InstallationId:{a}</Tags>")
    let long = "<" + String(repeating: "a", count: 2001)
    let text = [
      "\u{FEFF}" + line("a"), "", line("b") + "\r", "nonsense", bad, long, line("a"),
      "<FcmRegistrationDescription/>",
    ].joined(separator: "\n")
    let (job, output, failed) = try await world.run(.importCreateRegistrations, lines: text)
    #expect(job.status == .completed, "\(job.failure ?? "")")
    #expect(
      output == """
        1,Created,a
        3,Created,b
        4,Failed,The specified resource description is invalid.
        5,Failed,Tags can not start with $
        6,Failed,The line has more than 2000 bytes
        7,Failed,The registration 'a' exists already
        8,Failed,The specified resource description is invalid.

        """)
    #expect(
      failed == [
        "nonsense", bad, line("a"), "<FcmRegistrationDescription/>",
      ].joined(separator: "\n") + "\n")
    #expect(job.checkpoint.lines == 8)
    #expect(job.checkpoint.failedLines == 5)
    #expect(Set(try await world.registrations().keys) == ["a", "b"])
    try await world.end()
  }

  private func line(_ id: String?, tags: String = "") -> String { Self.line(id, tags: tags) }

  @Test("updates and deletions need a registration that is there, upserts do not")
  func kinds() async throws {
    let world = try await JobWorld()
    let text = [line("a"), line("b"), line(nil)].joined(separator: "\n")
    var result = try await world.run(.importUpdateRegistrations, lines: text)
    #expect(
      result.output == """
        1,Failed,There is no registration 'a'
        2,Failed,There is no registration 'b'
        3,Failed,The line has no RegistrationId

        """)
    result = try await world.run(.importUpsertRegistrations, lines: text)
    #expect(result.output.hasPrefix("1,Created,a\n2,Created,b\n3,Created,"))
    #expect(try await world.registrations().count == 3)
    result = try await world.run(
      .importUpdateRegistrations,
      lines: line("a", tags: "<ETag>1</ETag><Tags>red</Tags>") + "\n"
        + line("b", tags: "<ETag>7</ETag>"))
    #expect(result.output.hasPrefix("1,Updated,a\n2,Failed,"))
    #expect(try await world.registrations()["a"]?.tags == ["red"])
    #expect(try await world.registrations()["a"]?.etag == "2")
    result = try await world.run(.importDeleteRegistrations, lines: text)
    #expect(result.output == "1,Deleted,a\n2,Deleted,b\n3,Failed,The line has no RegistrationId\n")
    result = try await world.run(.importDeleteRegistrations, lines: line("a"))
    #expect(result.output == "1,Failed,There is no registration 'a'\n")
    result = try await world.run(.importCreateRegistrations, lines: "")
    #expect(result.job.status == .completed)
    #expect(result.output == "")
    try await world.end()
  }

  static let faults: [(String?, String?, String)] = [
    ("http://example.com/in.txt?sig=secret", nil, "may not use the host 'example.com'"),
    ("https://storage.test/in.txt", "https://other.test/c?sig=secret", "'other.test'"),
    ("http://a.blob.test.evil/in.txt", nil, "'a.blob.test.evil'"),
    ("http://blob.test/in.txt", nil, "'blob.test'"),
    ("http://me:secret@storage.test/in.txt", nil, "user"),
    ("ftp://storage.test/in.txt", nil, "scheme 'ftp'"),
    ("file:///etc/passwd", nil, "outside the directory"),
    ("file://storage.test/etc/passwd", nil, "outside the directory"),
    ("DIR/../../etc/passwd", nil, "outside the directory"),
    ("DIR/%2e%2e/%2E%2E/etc/passwd", nil, "outside the directory"),
    ("DIR/link/passwd", nil, "outside the directory"),
    ("DIR/dangling", nil, "outside the directory"),
    ("DIR/missing.txt", nil, "no such file"),
    ("DIR/", nil, "directory"),
    ("DIR/in.txt", "file:///tmp/elsewhere", "outside the directory"),
    ("DIR/in.txt", "DIR/link", "outside the directory"),
    ("http://127.0.0.1:1/in.txt", nil, "cannot be reached"),
    ("http://127.0.0.1:2/in.txt", nil, "by https at port 443 only"),
    ("http://storage.test/in.txt", nil, "by https at port 443 only"),
    ("https://storage.test:8443/in.txt", nil, "by https at port 443 only"),
    ("https://storage.test/../in.txt", nil, "cannot be read"),
    ("https://127.0.0.2/in.txt", nil, "not public"),
    ("DIR/in.txt", "https://127.0.0.2/c", "not public"),
    ("DIR/pipe", nil, "no such file"),
  ]

  @Test("a job goes nowhere that the operator has not allowed, and says why", arguments: faults)
  func refusal(input: String?, output: String?, reason: String) async throws {
    let world = try await JobWorld(
      hosts: ["storage.test", "127.0.0.1:1", "*.blob.test", "*.0.0.2"]) { $0.attempts = 1 }
    // Nobody ever writes to it.
    try #require(mkfifo(world.directory.path("pipe"), 0o600) == 0)
    try Data().write(to: world.directory.url.appending(path: "in.txt"))
    let files = FileManager.default
    try files.createSymbolicLink(
      atPath: world.directory.path("link"), withDestinationPath: "/etc")
    try files.createSymbolicLink(
      atPath: world.directory.path("dangling"), withDestinationPath: "/tmp/\(UUID().uuidString)")
    let job = try await world.run(
      .importCreateRegistrations, input: input?.replacing("DIR", with: world.container),
      output: output?.replacing("DIR", with: world.container))
    #expect(job.status == .failed)
    #expect(job.failure?.contains(reason) == true, "\(job.failure ?? "no reason")")
    #expect(job.failure?.contains("secret") == false)
    #expect(try files.contentsOfDirectory(atPath: world.workspace.url.path).isEmpty)
    try await world.end()
  }

  @Test("results can be read by the server's user only")
  func permissions() async throws {
    let world = try await JobWorld()
    let job = try await world.run(.exportRegistrations)
    #expect(job.status == .completed)
    for name in [job.outputFile, job.failedFile] {
      let path = world.directory.path(try #require(name))
      let attributes = try FileManager.default.attributesOfItem(atPath: path)
      #expect(attributes[.posixPermissions] as? Int == 0o600)
    }
    try await world.end()
  }

  @Test("without a directory for jobs no file is used")
  func noDirectory() async throws {
    let world = try await JobWorld { $0.directory = nil }
    let job = try await world.run(.exportRegistrations)
    #expect(job.failure?.contains("jobDirectory") == true)
    try await world.end()
  }

  @Test("large results go to a blob store in blocks, small ones whole, and come back")
  func blobs() async throws {
    let blobs = BlobStore()
    var configuration = HTTPConfiguration()
    configuration.maxBodyBytes = 5 << 20
    let listener = try HTTPListener(configuration, handler: blobs)
    let world = try await JobWorld(hosts: ["127.0.0.1:\(listener.port)"])
    let service = world.hub.service
    let body = "{\"message\":{\"data\":{\"a\":\"\(String(repeating: "x", count: 3000))\"}}}"
    for number in 0..<1500 {
      _ = try await service.registrations.create(
        hub: world.address,
        Registration(
          platform: .fcmv1, channel: .handle("f-\(number)"),
          kind: .template(PushTemplate(body: body), name: nil)))
    }
    let base = "http://127.0.0.1:\(listener.port)/c"
    blobs.fail(1)
    let export = try await world.run(.exportRegistrations, output: base + "/?sv=1&sig=a%2Bb")
    #expect(export.status == .completed, "\(export.failure ?? "")")
    let path = "/c/" + (export.outputFile ?? "")
    #expect(blobs.blockCount(path) > 1)
    #expect(blobs[path]?.count == Int(export.checkpoint.outputBytes))
    #expect(blobs["/c/" + (export.failedFile ?? "")] == [])
    let before = try await world.registrations()
    _ = try await service.deleteHub(named: "hub1")
    let again = try await JobWorld(hosts: ["127.0.0.1"])
    let job = try await again.run(
      .importCreateRegistrations, input: "http://127.0.0.1:\(listener.port)\(path)?sig=a%2Bb",
      output: base + "?sig=a%2Bb")
    #expect(job.status == .completed, "\(job.failure ?? "")")
    #expect(try await again.registrations().keys == before.keys)
    for (input, reason) in [
      ("/c/moved?sig=a%2Bb", "redirection"), ("/c/none?sig=a%2Bb", "no such file"),
      ("/c/x?sig=wrong", "does not allow"),
    ] {
      let failed = try await again.run(
        .importDeleteRegistrations, input: "http://127.0.0.1:\(listener.port)\(input)",
        output: base + "?sig=a%2Bb")
      #expect(failed.failure?.contains(reason) == true, "\(failed.failure ?? "no reason")")
    }
    try await world.end()
    try await again.end()
    await listener.stop()
  }

  @Test(
    "a killed job goes on where it was, and no line is done twice",
    arguments: [3, 40, 100])
  func restart(calls: Int) async throws {
    let store = try await temporaryStore()
    let hub = try await TestHub(store: store)
    let process = StoreHook()
    let first = try await JobWorld(store: store.seen(by: process), isNew: false)
    let lines = (0..<300).map { line($0 % 3 == 0 ? nil : "r\($0)") }.joined(separator: "\n")
    let file = first.directory.path("in.txt")
    try Data(lines.utf8).write(to: URL(fileURLWithPath: file))
    let job = HubJob(
      id: HubJob.newID(at: TestHub.now, random: .system), hub: first.address.id,
      kind: .importCreateRegistrations, outputContainer: first.container,
      importFile: "file://" + file, createdAt: TestHub.now)
    try await hub.store.addJob(job, forgetting: .distantPast)
    process.die(afterCalls: calls)
    await first.runner.submit(job)
    await first.runner.waitUntilIdle()
    await first.runner.stop()
    let half = try await hub.store.job(job.id, hub: job.hub)
    #expect(half?.status.isFinal == false)
    let second = try await JobWorld(
      store: hub.store, directory: first.directory, workspace: first.workspace, isNew: false)
    try await second.runner.start()
    await second.runner.waitUntilIdle()
    let done = try #require(try await hub.store.job(job.id, hub: job.hub))
    #expect(done.status == .completed, "\(done.failure ?? "")")
    #expect(done.checkpoint.lines == 300)
    #expect(done.checkpoint.failedLines == 0)
    let output = try second.result(done.outputFile).split(separator: "\n")
    #expect(output.map { $0.prefix { $0 != "," } } == (1...300).map { "\($0)"[...] })
    #expect(try await second.registrations().count == 300)
    try await second.end()
  }

  // Earlier compilers have no tests in a process of their own, and other tests' memory is not to be
  // told from this one's.
  #if compiler(>=6.2)
    @Test("a page of lines is all that is held, however long the file")
    func streaming() async {
      await #expect(processExitsWith: .success) {
        let world = try await JobWorld { $0.batch = 1000 }
        let file = world.directory.path("in.txt")
        #expect(FileManager.default.createFile(atPath: file, contents: nil))
        let handle = try #require(FileHandle(forWritingAtPath: file))
        let line = "<not a registration>" + String(repeating: "x", count: 980) + "\n"
        let nonsense = Data(String(repeating: line, count: 1000).utf8)
        for _ in 0..<200 { try handle.write(contentsOf: nonsense) }
        let before = try Self.residentBytes()
        let job = try await world.run(.importDeleteRegistrations, input: "file://" + file)
        #expect(job.checkpoint.lines == 200_000)
        #expect(job.checkpoint.failedLines == 200_000)
        // The file has 200 MB.
        #expect(try Self.residentBytes() - before < 80 << 20)
        try await world.end()
      }
    }
  #endif

  fileprivate static func residentBytes() throws -> Int {
    #if os(Linux)
      let fields = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
        .split(separator: " ")
      return (Int(fields[1]) ?? 0) * 4096
    #else
      return 0
    #endif
  }
}
