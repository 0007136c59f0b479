import Foundation
import HubCore
import HubServer
import HubTesting
import NotificationHubs

/// A hub whose jobs run, with a directory for their files.
struct JobWorld {
  let hub: TestHub
  let address: Hub
  let runner: JobRunner
  let directory: TemporaryDirectory
  let workspace: TemporaryDirectory

  init(
    store: (any HubStore)? = nil, hosts: [String] = [],
    directory: TemporaryDirectory? = nil, workspace: TemporaryDirectory? = nil,
    isNew: Bool = true, configure: (inout JobConfiguration) -> Void = { _ in }
  ) async throws {
    hub = try await TestHub(hubs: isNew ? ["hub1"] : [], store: store)
    address = try await hub.service.hub(named: "hub1")
    self.directory = try directory ?? TemporaryDirectory()
    self.workspace = try workspace ?? TemporaryDirectory()
    var configuration = JobConfiguration(workspace: self.workspace.url)
    configuration.directory = self.directory.url
    configuration.allowedHosts = hosts
    configuration.startDelay = .zero
    configuration.batch = 16
    configuration.attempts = 2
    configure(&configuration)
    runner = JobRunner(
      service: HubService(
        store: hub.store, directory: hub.service.directory, dispatcher: hub.service.dispatcher,
        clock: .system, random: .system), configuration: configuration)
  }

  func end() async throws {
    await runner.stop()
    directory.remove()
    workspace.remove()
  }

  var container: String { "file://" + directory.url.path }

  /// Submits a job and waits for its end.
  func run(
    _ kind: NotificationHubJob.Kind, input: String? = nil, output: String? = nil
  ) async throws -> HubJob {
    let job = HubJob(
      id: HubJob.newID(at: TestHub.now, random: .system), hub: address.id, kind: kind,
      outputContainer: output ?? container, importFile: input, createdAt: TestHub.now)
    try await hub.store.addJob(job, forgetting: .distantPast)
    await runner.submit(job)
    await runner.waitUntilIdle()
    return try await hub.store.job(job.id, hub: address.id) ?? job
  }

  /// Runs an import of a file with these lines; returns its job, `Output.txt` and `Failed.txt`.
  func run(
    _ kind: NotificationHubJob.Kind, lines text: String
  ) async throws -> (job: HubJob, output: String, failed: String) {
    let file = directory.path("in-\(UUID().uuidString).txt")
    try Data(text.utf8).write(to: URL(fileURLWithPath: file))
    let job = try await run(kind, input: "file://" + file)
    return (job, try result(job.outputFile), try result(job.failedFile))
  }

  func result(_ path: String?) throws -> String {
    guard let path else { return "nothing" }
    return try String(contentsOfFile: directory.path(path), encoding: .utf8)
  }

  /// All registrations of the hub, without the numbers, by their ids.
  func registrations() async throws -> [String: Registration] {
    var all: [String: Registration] = [:]
    var after: RegistrationID = 0
    while true {
      let page = try await hub.service.registrations.list(
        hub: address, .all, after: after, limit: 1000)
      for stored in page.registrations { all[stored.id] = Registration(stored) }
      guard page.hasMore, let last = page.registrations.last else { return all }
      after = last.number
    }
  }

  static let token = String(repeating: "AB12", count: 16)

  static func registration(_ number: Int) -> Registration {
    switch number % 4 {
    case 0:
      Registration(
        platform: .apns, channel: .handle("\(number)".leftPadded(64)),
        tags: ["red", Tag(rawValue: "n:\(number)")])
    case 1:
      Registration(
        platform: .fcmv1, channel: .handle("f-\(number)"),
        kind: .template(
          PushTemplate(body: "{\"message\":\n{\"data\":\r\n{\"a\":\"$(a)\"}}}"), name: "main"),
        tags: ["blue"], pushVariables: ["name": "Zoë & <\(number)>"])
    case 2:
      Registration(
        platform: .wns,
        channel: .handle("https://db5.notify.windows.com/?token=\(number)&x=%2b"))
    default:
      Registration(
        platform: .browser,
        channel: .subscription(
          endpoint: "https://push.example.com/\(number)",
          p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpk"
            + "NtoIAiw4", auth: "BTBZMqHH6r4Tts7J_aSIgg"), tags: ["red"])
    }
  }
}

extension String {
  fileprivate func leftPadded(_ count: Int) -> String {
    String(repeating: "A", count: max(0, count - self.count)) + self
  }
}
