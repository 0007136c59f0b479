import Foundation
import NotificationHubs
import PushDevice

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

      The app is the device SDK (docs/device.md), whose states are lines on standard error. --state
      keeps the phone over restarts; --locked, --offline, --rotate-every, --reinstall and
      --permission show how it behaves then.
      """,
    examples: [
      "belfry phone --data ./dev --tags 12345", "belfry phone --tags news --count 1 --json",
      "belfry phone --state ./phone --user anna --then-user bob --offline 30s",
      "belfry phone --platform web --tags news", "belfry phone --user alice --secure",
    ])

  private static let standardControl = "http://127.0.0.1:9400"

  let client = ClientOptions(directoryAccess: .server)
  @Option(
    "--control", "URL",
    "the emulator's control address (default that of the hub's `belfry up`, or port 9400)")
  var control: String?
  @Option(
    "--platform", "NAME",
    "what it is: \(PushPlatform.phones.map(\.word).joined(separator: ", "))", .phone)
  var platform = PushPlatform.apns
  @Option(
    "--topic", "ID",
    "the app of an apns phone (default \(StandIns.standardTopic), or the emulator's only app)")
  var topic: String?
  @Option("--tags", "A,B", "its tags (default the tutorial's: 12345)", .tags) var tags: [Tag]?
  @Option(repeated: "--template", "NAME=BODY", "its templates (default the tutorial's)", .pair)
  var templates: [(name: String, value: String)]
  @Option("--id", "ID", "its installation id (default a new UUID)", .installationID)
  var id: String?
  @Option("--user", "ID", "the signed-in user", .userID) var user: String?
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
    "--then-user", "ID", "the user who signs in when the first one has signed out", .userID)
  var nextUser: String?
  @Option("--state", "DIR", "keep the app's state there, and be the same phone at the next start")
  var state: String?
  @Flag("--reinstall", "be a phone whose app was deleted and installed again; with --state")
  var isReinstalled
  @Option(
    "--restore-from", "DIR", "be a new phone with the backup of the one in DIR; with --state")
  var backup: String?
  @Option("--locked", "TIME", "be locked for so long, as after a restart", .time(1...86_400))
  var lockedFor: Int?
  @Option("--offline", "TIME", "have no network for so long", .time(1...86_400))
  var offlineFor: Int?
  @Option("--rotate-every", "TIME", "get another handle again and again", .time(1...86_400))
  var rotationInterval: Int?
  @Option("--permission", "WORD", "the user's permission to show notifications, as a tag", .word)
  var permission: PushPermission?
  @Option(
    "--simctl", "DIR", "write each push as a file for `xcrun simctl push` there; apns only")
  var simulatorFiles: String?
  @Option(
    "--count", "N", "end after so many notifications (default: run until Ctrl-C)",
    .integer(1...Int(Int32.max))) var count: Int?

  func run(in context: CommandContext) async throws {
    guard !channels.isEmpty && (platform != .apns || isSecure) else {
      return isSecure ? try await runSecure(in: context) : try await runPlain(in: context)
    }
    throw UsageError("--channel is for apns phones, and not with --secure")
  }

  /// - Throws: ``UsageError`` for options that do not go together.
  private func circumstances() throws -> PhoneCircumstances {
    guard state != nil || !isReinstalled else { throw UsageError("--reinstall needs --state DIR") }
    guard state != nil || backup == nil else {
      throw UsageError("--restore-from needs --state DIR")
    }
    guard platform == .apns || simulatorFiles == nil else {
      throw UsageError("--simctl is for apns phones")
    }
    guard platform == .apns || !isSandbox && topic == nil else {
      throw UsageError("--sandbox and --topic are for apns phones")
    }
    guard user != nil || nextUser == nil else {
      throw UsageError("--then-user needs the first user: --user ID")
    }
    for (name, path) in [("--state", state), ("--simctl", simulatorFiles)] {
      if let path { try Self.prepare(path, name) }
    }
    if let state,
      FileManager.default.fileExists(atPath: DataDirectory(path: state).masterKeyFile)
    {
      throw UsageError("--state: \(state) is the data directory of a server")
    }
    return PhoneCircumstances(
      state: state.map { URL(filePath: $0, directoryHint: .isDirectory) }, installationID: id,
      isReinstalled: isReinstalled,
      backup: backup.map { URL(filePath: $0, directoryHint: .isDirectory) },
      lockedFor: lockedFor, offlineFor: offlineFor,
      rotationInterval: rotationInterval, permission: permission)
  }

  /// Makes a directory, unless it is there.
  private static func prepare(_ path: String, _ name: String) throws {
    do {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw UsageError("\(name): '\(path)' cannot be used as a directory")
    }
    guard FileManager.default.isWritableFile(atPath: path) else {
      throw UsageError("\(name): files cannot be made in '\(path)'")
    }
  }

  /// The phone of the state directory, or a new one.
  private func phone(
    _ control: EmulatorControl, _ circumstances: PhoneCircumstances, in context: CommandContext
  ) async throws -> VirtualPhone {
    let files = circumstances.state.map { FileStorage(directory: $0) }
    if backup != nil, try files?.load(.record) != nil {
      throw UsageError("--restore-from: there is a phone in the directory of --state already")
    }
    if let backup = circumstances.backup,
      try FileStorage(directory: backup).load(.record) == nil
    {
      throw UsageError("--restore-from: there is no phone in '\(backup.path)'")
    }
    if isReinstalled, try files?.load(.record) == nil {
      context.note("--reinstall: there is no phone in the directory of --state yet")
    }
    let known = try files?.load(PhoneStorage.device)
    let phone = try await VirtualPhone.make(
      control: control, platform: platform, topic: topic, isSandbox: isSandbox,
      known: known.map { String(decoding: $0, as: UTF8.self) })
    try files?.save(Data(phone.device.deviceId.utf8), as: PhoneStorage.device)
    return phone
  }

  private func runPlain(in context: CommandContext) async throws {
    guard backend == nil, password == nil else {
      throw UsageError("--backend and --password are for --secure")
    }
    let circumstances = try circumstances()
    let access = try await client.access(.changes, in: context)
    let known =
      try self.control
      ?? RunningUp.of(try client.location.target(in: context), context.environment)?.control
    let control = try EmulatorControl(known ?? Self.standardControl)
    let phone: VirtualPhone
    do {
      phone = try await self.phone(control, circumstances, in: context)
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
    let network = PhoneNetwork(access.transport, isOffline: offlineFor != nil)
    let app = PhoneApp(
      phone: phone, storage: try PhoneStorage(circumstances), circumstances: circumstances,
      network: network,
      registrar: HubRegistrar(
        connectionString: access.connection, hub: access.hub, transport: network))
    try await whileLiving(app.live, in: context) {
      try await register(app, at: access, in: context)
      let tags = tags ?? Array(PushPlatform.phoneTags)
      let signedIn = try await app.push.userID
      try announce(
        await app.push.installationID ?? "", phone, ["platform": platform.word],
        [("tags", tags.map(\.rawValue).joined(separator: ", "))]
          + (signedIn.map { [("user", "\($0), tag $UserId:{\($0)}")] } ?? [])
          + channels.map { ("channel", $0) }, in: context)
      let name = name(of: phone)
      try await show(app.device.arrivals(), app: name, in: context) { arrival in
        let line = PhoneLine(
          title: arrival.shown?.title, body: arrival.shown?.body, payload: arrival.payload,
          headers: arrival.headers)
        return (line, arrival.banner(app: name), arrival.payload)
      }
    }
  }

  /// The name of the phone's app: its bundle id, or its platform.
  private func name(of phone: VirtualPhone) -> String {
    platform == .apns ? topic ?? phone.topic ?? StandIns.standardTopic : platform.word
  }

  private func register(
    _ app: PhoneApp, at access: HubAccess, in context: CommandContext
  ) async throws {
    do {
      try await app.launch(note: context.note) { push in try await setUp(push) }
      try await app.registered()
      if let nextUser {
        try await app.push.signOut()
        try await app.push.signIn(as: nextUser)
        try await app.registered()
      }
    } catch let error as RegistrarError {
      if let cause = error.cause as? NotificationHubError { throw access.failure(cause) }
      throw CommandFailure("the phone is not registered: \(error)")
    }
  }

  /// Stores the desired installation.
  private func setUp(_ push: PushInstallation) async throws {
    let templates = templates.isEmpty ? platform.phoneTemplates : self.templates.templates
    let tags = tags.map { Set($0) } ?? PushPlatform.phoneTags
    try await push.update {
      $0.tags = tags
      $0.templates = templates
    }
    if let user { try await push.signIn(as: user) }
  }

  /// - Parameters:
  ///   - members: Of the JSON object, besides the phone's own.
  ///   - rows: The lines between the handle and the last one.
  ///   - advice: The lines after that.
  private func announce(
    _ installationID: String, _ phone: VirtualPhone, _ members: [String: String],
    _ rows: [(String, String)], advice: [String] = [], in context: CommandContext
  ) throws {
    var object = [
      "installationId": installationID, "deviceId": phone.device.deviceId, "token": phone.token,
    ]
    object.merge(members) { $1 }
    let all = [
      (platform.traits.phone?.handleName ?? "handle", phone.token),
      ("installation", installationID),
    ]
    try CommandResult(
      object,
      (all + rows).map { $0.padded(to: 17) + $1 } + ["waiting for notifications; Ctrl-C ends"]
        + advice
    ).print(asJSON: client.json, in: context)
  }

  /// Shows what arrives, until there have been `--count`.
  private func show<Arrivals: AsyncSequence>(
    _ arrivals: Arrivals, app: String, in context: CommandContext,
    _ shown: (Arrivals.Element) -> (line: any Encodable & Sendable, text: [String], payload: String)
  ) async throws {
    var count = 0
    for try await arrival in arrivals {
      let (line, text, payload) = shown(arrival)
      try CommandResult(line, text).print(asJSON: client.json, in: context)
      count += 1
      try writeForSimulator(payload, app: app, in: context)
      if count == self.count { return }
    }
    throw CommandFailure("the emulator has ended the phone's connection", exitCode: .unreachable)
  }

  /// Lets the phone's circumstances take their course while its pushes are shown.
  private func whileLiving(
    _ live: @escaping @Sendable (_ note: @escaping @Sendable (String) -> Void) async throws -> Void,
    in context: CommandContext, show: @escaping @Sendable () async throws -> Void
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await live(context.note) }
      group.addTask { try await show() }
      // The states end only with the phone.
      try await group.next()
      group.cancelAll()
    }
  }

  /// Writes a push in the form in which a simulator takes it, after those of earlier starts.
  private func writeForSimulator(
    _ payload: String, app: String, in context: CommandContext
  ) throws {
    guard let simulatorFiles else { return }
    let numbers = try FileManager.default.contentsOfDirectory(atPath: simulatorFiles).compactMap {
      $0.hasPrefix("push-") && $0.hasSuffix(".apns") ? Int($0.dropFirst(5).dropLast(5)) : nil
    }
    let file = "\(simulatorFiles)/push-\((numbers.max() ?? 0) + 1).apns"
    try SimulatorPush.file(payload: Data(payload.utf8), bundleID: app)
      .write(to: URL(filePath: file))
    context.note("xcrun simctl push booted \(CurlCommand.quoted(file))")
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
    guard let backend = URL(string: address), backend.host() != nil,
      ["", "/"].contains(backend.path())
    else {
      throw UsageError(
        "--backend: '\(address)' is not the address of a backend, which has no path, as "
          + "http://127.0.0.1:8090")
    }
    guard offlineFor == nil, nextUser == nil else {
      throw UsageError("--offline and --then-user are not for --secure")
    }
    let circumstances = try circumstances()
    let phone = try await SecurePhone.start(
      phone: try await self.phone(
        try EmulatorControl(control ?? running?.control ?? Self.standardControl), circumstances,
        in: context),
      storage: try PhoneStorage(circumstances), circumstances: circumstances, backend: backend,
      user: user, password: password ?? user, tags: tags.map { Set($0) } ?? PushPlatform.phoneTags,
      note: context.note)
    let login = CurlCommand.quoted(password == nil ? "\(user):\(user)" : user)
    try announce(
      phone.installationID, phone.phone, ["user": user], [("signed in", "\(user) at \(address)")],
      advice: [
        "\(user)'s own secret, from elsewhere:",
        "  curl -u \(login) -X POST \(address)/api/notifications",
      ], in: context)
    try await whileLiving(phone.live, in: context) {
      let app = name(of: phone.phone)
      try await show(phone.showings(), app: app, in: context) { showing in
        let banner = PhoneScreen.banner(showing.text.components(separatedBy: "\n"), app: app)
        return (showing, banner + [showing.source.explanation], showing.payload)
      }
    }
  }
}

/// A notification as a line of JSON.
private struct PhoneLine: Encodable {
  let title: String?
  let body: String?
  let payload: String
  let headers: [String: String]
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
