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
        "the emulator's control address (default that of the hub's `belfry up`, or port 9400)"),
      .value(
        "--platform", "NAME",
        "what it is: \(PhonePlatform.words.joined(separator: ", ")) (default apns)",
        words: PhonePlatform.words),
      .value("--topic", "ID", "the app of an apns phone (default \(StandIns.standardTopic))"),
      .value("--tags", "A,B", "its tags (default the tutorial's: 12345)"),
      .value(
        "--template", "NAME=BODY", "its templates (default the tutorial's)", repeats: true),
      .value("--id", "ID", "its installation id (default a new UUID)"),
      .value("--user", "ID", "the signed-in user"),
      .flag(
        "--secure", "sign the user in at the app backend, which registers the phone; show secrets"),
      .value("--backend", "URL", "the app backend (default that of the hub's `belfry up`)"),
      .value("--password", "TEXT", "the user's (default the user's name, as `belfry up` wants it)"),
      .value(
        "--channel", "ID",
        "follow this broadcast channel of `belfry channel create`, as a Live Activity does",
        repeats: true),
      .flag("--sandbox", "be a development build: APNs knows its token in the sandbox only"),
      .value("--count", "N", "end after so many notifications (default: run until Ctrl-C)"),
    ],
    discussion: """
      The phone gets from the emulator what its push service reaches it by (a device token, a
      subscription, a channel URI, …), registers an installation as the tutorial's app does, and is
      online while this command runs: an iPhone, an Android phone (fcm), a browser (web), whose
      messages it decrypts, or a device of WNS, ADM, Baidu or Xiaomi. With --json each notification is
      one line.

      With --secure it is an iPhone that runs the secure tutorial's app: it opens what is sealed
      into a push, or fetches it from the backend, and tells which.

      \(ClientOptions.note)
      """,
    examples: [
      "belfry phone --data ./dev --tags 12345", "belfry phone --tags news --count 1 --json",
      "belfry phone --channel dHN0LXNyY2gtY2hubA==",
      "belfry phone --platform web --tags news", "belfry phone --user alice --secure",
    ])

  let client: ClientOptions
  let words: Words
  let count: Int
  let platform: PhonePlatform

  init(_ words: Words) throws {
    client = ClientOptions(words: words)
    self.words = words
    let name = words.value("--platform") ?? PhonePlatform.apns.rawValue
    guard let platform = PhonePlatform(rawValue: name) else {
      let known = PhonePlatform.words.joined(separator: ", ")
      throw words.fault("--platform wants one of: \(known); not '\(name)'")
    }
    self.platform = platform
    if words.flag("--secure") {
      guard words.value("--user")?.isEmpty == false else {
        throw words.fault("--secure wants to know who signs in: --user NAME")
      }
      guard platform == .apns, words.all("--template").isEmpty else {
        throw words.fault("--secure is an apns phone with the tutorial's template")
      }
    } else if words.value("--backend") != nil || words.value("--password") != nil {
      throw words.fault("--backend and --password are for --secure")
    }
    if platform != .apns || words.flag("--secure"), words.flag("--channel") {
      throw words.fault("--channel is for apns phones, and not with --secure")
    }
    for id in words.all("--channel") where !BroadcastChannel.isID(id) {
      throw words.fault("--channel: '\(id)' is no channel's id; see `belfry channel list`")
    }
    count = try words.integer("--count", in: 1...Int(Int32.max)) ?? .max
  }

  func run(in context: CommandContext) async throws {
    if words.flag("--secure") { return try await runSecure(in: context) }
    let access = try await client.access(.changes("Listen"), in: context)
    let topic = words.value("--topic") ?? StandIns.standardTopic
    let known =
      try words.value("--control")
      ?? RunningUp.of(try client.target(in: context), context.environment)?.control
    let control = try EmulatorControl(known ?? "http://127.0.0.1:9400")
    let phone: VirtualPhone
    do {
      phone = try await VirtualPhone.make(
        control: control, platform: platform, topic: topic, isSandbox: words.flag("--sandbox"))
    } catch let failure as CommandFailure where known == nil && failure.exitCode == .unreachable {
      throw CommandFailure(
        "\(failure). A virtual phone gets its token from an emulator, and is reached through it: "
          + "`belfry up` runs a hub with one. A hub of `belfry serve` needs `belfry emulator`, and "
          + "credentials that lead there (docs/emulator.md)", exitCode: failure.exitCode)
    }
    if known == nil {
      context.note(
        "warning: hub \(access.hub) is of no `belfry up`: its pushes reach this phone only if its "
          + "credentials lead to the emulator at \(control.base.absoluteString)")
    }
    for channel in words.all("--channel") {
      try await control.subscribe(phone.device.deviceId, to: channel)
    }
    let installation = try installation(of: phone)
    try await access.calling { try await access.client.createOrReplace(installation) }
    try announce(installation, phone, in: context)
    try await show(phone, topic: topic, in: context)
  }

  private func installation(of phone: VirtualPhone) throws -> Installation {
    var tags = DemoDevice.tags
    if let text = words.value("--tags") {
      tags = TextInput.list(text).map { Tag(rawValue: $0) }
    }
    var templates = platform.templates
    if !words.all("--template").isEmpty {
      templates = [:]
      for text in words.all("--template") {
        let (name, body) = try TextInput.pair(text, of: "--template", in: words)
        templates[name] = PushTemplate(body: body)
      }
    }
    var installation = Installation(
      installationID: words.value("--id") ?? UUID().uuidString.lowercased(),
      platform: platform.platform, pushChannel: phone.channel, tags: tags, templates: templates)
    installation.userID = words.value("--user")
    return installation
  }

  private func announce(
    _ installation: Installation, _ phone: VirtualPhone, in context: CommandContext
  ) throws {
    if client.json {
      struct Ready: Encodable {
        let installationId: String
        let deviceId: String
        let platform: String
        let token: String
      }
      return try context.printJSON(
        Ready(
          installationId: installation.installationID, deviceId: phone.device.deviceId,
          platform: platform.rawValue, token: phone.token))
    }
    for (label, value) in [
      (platform.handleName, phone.token), ("installation", installation.installationID),
      ("tags", installation.tags.map(\.rawValue).joined(separator: ", ")),
    ] + words.all("--channel").map({ ("channel", $0) }) {
      context.print(label.padded(to: 17) + value)
    }
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
        for line in arrival.banner(app: platform == .apns ? topic : platform.rawValue) {
          context.print(line)
        }
      }
      left -= 1
      if left == 0 { return }
    }
    throw CommandFailure("the emulator has ended the phone's connection", exitCode: .unreachable)
  }
}
