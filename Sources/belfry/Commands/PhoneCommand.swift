import Foundation
import NotificationHubs
import PushDemo

/// `belfry phone`
struct PhoneCommand: Subcommand {
  static let help = CommandHelp(
    "phone", "run a virtual phone: it registers with a hub and shows what arrives",
    options: ClientOptions.options + [
      .value(
        "--control", "URL",
        "the emulator's control address (default that of the `belfry up` that runs, or port 9400)"),
      .value("--topic", "ID", "the app (default \(StandIns.standardTopic))"),
      .value("--tags", "A,B", "its tags (default the tutorial's: 12345)"),
      .value(
        "--template", "NAME=BODY", "its templates (default the tutorial's)", repeats: true),
      .value("--id", "ID", "its installation id (default a new UUID)"),
      .value("--user", "ID", "the signed-in user"),
      .value("--count", "N", "end after so many notifications (default: run until Ctrl-C)"),
    ],
    discussion: """
      The phone gets a device token from the emulator, registers an installation as the tutorial's
      app does, and is online while this command runs. With --json each notification is one line.

      \(ClientOptions.note)
      """,
    examples: [
      "belfry phone --data ./dev --tags 12345", "belfry phone --tags news --count 1 --json",
    ])

  let client: ClientOptions
  let words: Words
  let count: Int

  init(_ words: Words) throws {
    client = ClientOptions(words: words)
    self.words = words
    count = try words.integer("--count", in: 1...Int(Int32.max)) ?? .max
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(in: context)
    let topic = words.value("--topic") ?? StandIns.standardTopic
    let control = try EmulatorControl(
      words.value("--control") ?? RunningUp.find(context.environment)?.control
        ?? "http://127.0.0.1:9400")
    let phone = try await VirtualPhone.make(control: control, topic: topic)
    let id = words.value("--id") ?? UUID().uuidString.lowercased()
    var device = try phone.demoDevice(installationID: id)
    if let tags = words.value("--tags") {
      device.tags = TextInput.list(tags).map { Tag(rawValue: $0) }
    }
    if !words.all("--template").isEmpty {
      device.templates = [:]
      for text in words.all("--template") {
        let (name, body) = try TextInput.pair(text, of: "--template", in: words)
        device.templates[name] = PushTemplate(body: body)
      }
    }
    var installation = device.installation
    installation.userID = words.value("--user")
    let registered = installation
    try await client.calling { try await access.client.createOrReplace(registered) }
    try announce(id, phone, device, in: context)
    try await show(phone, topic: topic, in: context)
  }

  private func announce(
    _ id: String, _ phone: VirtualPhone, _ device: DemoDevice, in context: CommandContext
  ) throws {
    if client.json {
      struct Ready: Encodable {
        let installationId: String
        let deviceId: String
        let token: String
      }
      return try context.printJSON(
        Ready(installationId: id, deviceId: phone.device.deviceId, token: phone.token))
    }
    context.print("device token   \(phone.token)")
    context.print("installation   \(id)")
    context.print("tags           \(device.tags.map(\.rawValue).joined(separator: ", "))")
    context.print("waiting for notifications; Ctrl-C ends")
  }

  private func show(_ phone: VirtualPhone, topic: String, in context: CommandContext) async throws {
    struct Line: Encodable {
      let title: String?
      let body: String?
      let payload: String
      let headers: [String: String]
    }
    var left = count
    for try await arrival in phone.arrivals() {
      if client.json {
        try context.printJSON(
          Line(
            title: arrival.shown?.title, body: arrival.shown?.body, payload: arrival.payload,
            headers: arrival.headers))
      } else {
        for line in arrival.banner(app: topic) { context.print(line) }
      }
      left -= 1
      if left == 0 { return }
    }
    throw CommandFailure("the emulator has ended the phone's connection", exitCode: .unreachable)
  }
}
