import Foundation
import NotificationHubs
import PushDemo

struct PhoneCommand: Subcommand {
  static let about = CommandHelp(
    "phone", "run a virtual phone: it registers with a hub and shows what arrives",
    discussion: """
      The phone gets its handle from the emulator (a device token, a subscription, a channel URI,
      …), registers an installation as the tutorial's app does, and is online while this command
      runs: an iPhone, an Android phone (fcm), a browser (web), whose messages it decrypts, or a
      device of another service. With --json each notification is one line.

      With --secure it is an iPhone that runs the secure tutorial's app: it decrypts the payload
      of a push, or fetches it from the backend, and says which.
      """,
    examples: [
      "belfry phone --data ./dev --tags 12345", "belfry phone --tags news --count 1 --json",
      "belfry phone --channel dHN0LXNyY2gtY2hubA==",
      "belfry phone --platform web --tags news", "belfry phone --user alice --secure",
    ])

  let client = ClientOptions(directoryAccess: .server)
  @Option(
    "--control", "URL",
    "the emulator's control address (default that of the hub's `belfry up`, or port 9400)")
  var control: String?
  @Option(
    "--platform", "NAME",
    "what it is: \(PushPlatform.phones.map(\.word).joined(separator: ", "))", .phone)
  var platform = PushPlatform.apns
  @Option("--topic", "ID", "the app of an apns phone") var topic = StandIns.standardTopic
  @Option("--tags", "A,B", "its tags (default the tutorial's: 12345)", .tags) var tags: [Tag]?
  @Option(repeated: "--template", "NAME=BODY", "its templates (default the tutorial's)", .pair)
  var templates: [(name: String, value: String)]
  @Option("--id", "ID", "its installation id (default a new UUID)") var id: String?
  @Option("--user", "ID", "the signed-in user") var user: String?
  @Flag(
    "--secure", "sign the user in at the app backend, which registers the phone; show secrets")
  var isSecure
  @Option("--backend", "URL", "the app backend (default that of the hub's `belfry up`)")
  var backend: String?
  @Option("--password", "TEXT", "the user's (default the user's name, as `belfry up` expects)")
  var password: String?
  @Option(
    repeated: "--channel", "ID",
    "follow this broadcast channel of `belfry channel create`, as a Live Activity does",
    .channelID) var channels: [String]
  @Flag("--sandbox", "be a development build: APNs knows its token in the sandbox only")
  var isSandbox
  @Option(
    "--count", "N", "end after so many notifications (default: run until Ctrl-C)",
    .integer(1...Int(Int32.max))) var count: Int?

  func run(in context: CommandContext) async throws {
    guard !channels.isEmpty && (platform != .apns || isSecure) else {
      return isSecure ? try await runSecure(in: context) : try await runPlain(in: context)
    }
    throw UsageError("--channel is for apns phones, and not with --secure")
  }

  private var installationID: String { id ?? UUID().uuidString.lowercased() }

  private func runPlain(in context: CommandContext) async throws {
    guard backend == nil, password == nil else {
      throw UsageError("--backend and --password are for --secure")
    }
    let access = try await client.access(.changes, in: context)
    let known =
      try self.control
      ?? RunningUp.of(try client.location.target(in: context), context.environment)?.control
    let control = try EmulatorControl(known ?? "http://127.0.0.1:9400")
    let phone: VirtualPhone
    do {
      phone = try await VirtualPhone.make(
        control: control, platform: platform, topic: topic, isSandbox: isSandbox)
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
    for channel in channels { try await control.subscribe(phone.device.deviceId, to: channel) }
    var installation = Installation(
      installationID: installationID, platform: platform, pushChannel: phone.channel,
      tags: tags ?? DemoDevice.tags,
      templates: templates.isEmpty ? platform.phoneTemplates : templates.templates)
    installation.userID = user
    try await access.calling { try await access.client.createOrReplace(installation) }
    try announce(installation, phone, in: context)
    try await show(phone, topic: topic, in: context)
  }

  private func announce(
    _ installation: Installation, _ phone: VirtualPhone, in context: CommandContext
  ) throws {
    let rows =
      [
        (platform.traits.phone?.handleName ?? "handle", phone.token),
        ("installation", installation.installationID),
        ("tags", installation.tags.map(\.rawValue).joined(separator: ", ")),
      ] + channels.map { ("channel", $0) }
    try CommandResult(
      [
        "installationId": installation.installationID, "deviceId": phone.device.deviceId,
        "platform": platform.word, "token": phone.token,
      ],
      rows.map { $0.padded(to: 17) + $1 } + ["waiting for notifications; Ctrl-C ends"]
    ).print(asJSON: client.json, in: context)
  }

  private func show(_ phone: VirtualPhone, topic: String, in context: CommandContext) async throws {
    struct Line: Encodable {
      let title: String?
      let body: String?
      let payload: String
      let headers: [String: String]
    }
    var left = count ?? .max
    for try await arrival in phone.arrivals() {
      try CommandResult(
        Line(
          title: arrival.shown?.title, body: arrival.shown?.body, payload: arrival.payload,
          headers: arrival.headers),
        arrival.banner(app: platform == .apns ? topic : platform.word)
      ).print(asJSON: client.json, in: context)
      left -= 1
      if left == 0 { return }
    }
    throw CommandFailure("the emulator has ended the phone's connection", exitCode: .unreachable)
  }

  private func runSecure(in context: CommandContext) async throws {
    guard let user, !user.isEmpty else {
      throw UsageError("--secure needs the user who signs in: --user NAME")
    }
    guard platform == .apns, templates.isEmpty else {
      throw UsageError("--secure is an apns phone with the tutorial's template")
    }
    let running = try HubTarget.find(client.location, environment: context.environment)
      .flatMap { RunningUp.of($0, context.environment) }
    guard let address = backend ?? running?.backend else {
      let other = RunningUp.last(context.environment).map {
        "; that of the running `belfry up` is \($0.backend)"
      }
      throw UsageError("which backend? --backend URL, or start `belfry up`" + (other ?? ""))
    }
    guard let backend = URL(string: address), backend.host() != nil else {
      throw UsageError("--backend: '\(address)' is not a valid address")
    }
    let phone = try await SecurePhone.start(
      control: try EmulatorControl(control ?? running?.control ?? "http://127.0.0.1:9400"),
      topic: topic, backend: backend, user: user, password: password ?? user,
      installationID: installationID, tags: tags ?? DemoDevice.tags)
    try announce(phone, user: user, backend: address, in: context)
    var left = count ?? .max
    for try await showing in phone.showings() {
      try CommandResult(
        showing,
        PhoneScreen.banner(showing.text.components(separatedBy: "\n"), app: topic)
          + [showing.source.explanation]
      ).print(asJSON: client.json, in: context)
      left -= 1
      if left == 0 { return }
    }
    throw CommandFailure("the emulator has ended the phone's connection", exitCode: .unreachable)
  }

  private func announce(
    _ phone: SecurePhone, user: String, backend: String, in context: CommandContext
  ) throws {
    let login = password == nil ? "\(user):\(user)" : user
    try CommandResult(
      [
        "installationId": phone.installationID, "deviceId": phone.phone.device.deviceId,
        "token": phone.phone.token, "user": user,
      ],
      [
        "signed in      \(user) at \(backend)", "device token   \(phone.phone.token)",
        "installation   \(phone.installationID)",
        "waiting for notifications; Ctrl-C ends. \(user)'s own secret, from elsewhere:",
        "  curl -u \(CurlCommand.quoted(login)) -X POST \(backend)/api/notifications",
      ]
    ).print(asJSON: client.json, in: context)
  }
}

extension SecurePhone.Source {
  /// The explanation in a line below the banner.
  var explanation: String {
    switch self {
    case .plain: "in the clear: push service and hub could read it"
    case .opened: "sealed in the push, opened on the phone without asking anybody"
    case .fetched: "only an id in the push; fetched from the backend"
    case .unavailable: "neither opened nor fetched: a general text stands for it"
    }
  }
}
