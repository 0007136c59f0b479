import Foundation
import HTTPServer
import NotificationHubs
import SecurePushBackend

/// What the commands of the backend share.
enum BackendOptions {
  static let store = Option.value(
    "--store", "DIR", "holds users, payloads and their key (default belfry-backend)")
  static let database = Option.value(
    "--database", "URL",
    "keep payloads in PostgreSQL, postgresql://user@host/db (or BELFRY_BACKEND_DATABASE)")
  static let users = Option.value(
    "--users", "FILE", "the user file (default users in the store's directory)")

  static func directory(_ words: Words) throws -> DataDirectory {
    try .make(at: words.value("--store") ?? "belfry-backend")
  }

  /// The address of the database; with a password in it better in the environment than in words.
  static func database(_ words: Words, _ context: CommandContext) -> String? {
    words.value("--database") ?? context.environment["BELFRY_BACKEND_DATABASE"]
  }

  /// The directory of a backend, which is not made.
  static func existing(_ words: Words) -> DataDirectory {
    let path = words.value("--store") ?? "belfry-backend"
    return DataDirectory(path: URL(fileURLWithPath: path).standardizedFileURL.path)
  }

  static func userFile(_ words: Words) -> String {
    words.value("--users") ?? existing(words).path + "/users"
  }

  static func user(_ name: String, in words: Words) throws -> UserName {
    guard let user = UserName(typed: name) else {
      throw words.fault(
        "'\(name)' cannot be a user's name: it must have 1 to 100 characters, none of them a "
          + "control character")
    }
    return user
  }
}

/// `belfry backend`
struct BackendCommand: Subcommand {
  static let help = CommandHelp(
    "backend", "run the app backend: sign-in, devices of users, secure notifications",
    options: ClientOptions.options + [
      BackendOptions.store, BackendOptions.database,
      .value("--address", "IP", "the address to listen on (default 127.0.0.1)"),
      .value("--port", "N", "the port (default 8090); 0 picks a free one"),
      .value("--certificate", "FILE", "speak HTTPS with this certificate (PEM, the chain)"),
      .value("--key", "FILE", "the certificate's private key (PEM)"),
      .flag(
        "--demo-auth", "take the user's name as password, as the tutorials do: never in public"),
      BackendOptions.users,
      .value("--issuer", "URL", "take bearer tokens of this OpenID provider"),
      .value("--audience", "NAME", "the audience that its tokens must have"),
      .value("--jwks", "URL|FILE", "its public keys"),
      .value("--user-claim", "NAME", "the claim that names the user (default sub)"),
      .value("--clock-skew", "TIME", "how far its clock may be from ours (default 60s)"),
      .value("--operator", "NAME", "a user who may send to others", repeats: true),
      .value(
        "--trusted-proxies", "CIDR,…",
        "addresses and networks whose X-Forwarded-For is believed: 10.0.0.0/8 (or "
          + "BELFRY_TRUSTED_PROXIES)"),
      .value("--token-lifetime", "TIME", "how long a token of POST /api/token lives (default 1h)"),
      .value(
        "--session-lifetime", "TIME",
        "how long a sign-in lasts without being used (default 90d)"),
      .value(
        "--listen-connection", "STRING",
        "a connection string with the right Listen alone: gives devices hub tokens by POST "
          + "/api/token/hub (or BELFRY_LISTEN_CONNECTION_STRING)"),
      .value("--expires-in", "TIME", "how long a message waits for its reader (default 7d)"),
      .value("--payload-limit", "BYTES", "the largest payload (default 32768)"),
      .value("--alert", "TEXT", "show this at once where the payload cannot be sealed"),
      .flag("--no-sealing", "never seal payloads into pushes: devices fetch them all"),
    ],
    discussion: """
      Devices talk to it instead of to the hub, so that none holds a key of the hub. A message stays
      here, sealed; through the hub goes its id, or the payload sealed for one device. The hub may
      be Belfry's or Azure's.

      Users of the user file and users whom an OpenID provider names are kept apart. Where both sign
      in, write name:alice or subject:abc for --operator and in requests.

        POST, DELETE /api/token            POST /api/token/hub
        POST   /api/register?handle=H      PUT, DELETE /api/register/ID
        PUT, DELETE /api/installations/ID
        POST   /api/notifications          GET /api/notifications[/ID]

      \(ClientOptions.note)
      """,
    examples: [
      "belfry backend user add alice",
      "belfry backend --connection \"$BELFRY_CONNECTION_STRING\" --hub news",
      "belfry backend --demo-auth",
      "belfry backend --issuer https://login.example.com --audience app --jwks keys.json",
    ])

  let client: ClientOptions
  let words: Words
  let port: UInt16
  let clockSkew: Int?
  let configuration: BackendConfiguration

  init(_ words: Words) throws {
    client = ClientOptions(words: words)
    self.words = words
    port = UInt16(try words.integer("--port", in: 0...65535) ?? 8090)
    clockSkew = try words.seconds("--clock-skew", in: 0...3600)
    var configuration = BackendConfiguration()
    let longest = Int(configuration.longestLifetime)
    if let seconds = try words.seconds("--expires-in", in: 1...longest) {
      configuration.lifetime = Double(seconds)
    }
    configuration.payloadLimit =
      try words.integer("--payload-limit", in: 1...131_072) ?? configuration.payloadLimit
    configuration.alert = words.value("--alert")
    if let seconds = try words.seconds("--token-lifetime", in: 60...86_400) {
      configuration.tokenLifetime = Double(seconds)
    }
    if let seconds = try words.seconds("--session-lifetime", in: 60...31_536_000) {
      configuration.sessionLifetime = Double(seconds)
    }
    configuration.sealsPayloads = !words.flag("--no-sealing")
    self.configuration = configuration
    if (words.value("--certificate") == nil) != (words.value("--key") == nil) {
      throw words.fault("--certificate and --key belong together")
    }
    if words.flag("--demo-auth"), words.value("--users") != nil {
      throw words.fault("--demo-auth and --users exclude each other")
    }
  }

  func run(in context: CommandContext) async throws {
    let signal = ShutdownSignal()
    let signIn = try signIn(context)
    let access = try await client.access(.changes("Manage"), in: context)
    var options = BackendRuntime.Options(
      directory: try BackendOptions.directory(words), signIn: signIn)
    let claim = try options.directory.claim()
    defer { withExtendedLifetime(claim) {} }
    options.database = BackendOptions.database(words, context)
    options.address = words.value("--address") ?? options.address
    options.port = port
    options.configuration = configuration
    options.configuration.listening = try listening(context, access)
    try await check(access, options.configuration.listening, context)
    options.trustedProxies = try trustedProxies(context)
    options.log = context.log
    if let certificate = words.value("--certificate"), let key = words.value("--key") {
      options.certificate = .files(CertificateFiles(certificate: certificate, key: key))
    } else if !["127.0.0.1", "::1", "localhost"].contains(options.address) {
      context.note(
        "warning: passwords and payloads travel in the clear; give --certificate and --key, or "
          + "put a proxy that speaks TLS in front")
    }
    let runtime = try BackendRuntime.start(options, hub: access.client)
    if client.json {
      try context.printJSON(["url": runtime.url])
    } else {
      context.print("backend    \(runtime.url)  (hub \(access.hub))")
      context.print("store      \(options.directory.path)")
      context.print("Ctrl-C ends it.")
    }
    _ = await signal.wait()
    await runtime.stop(within: .seconds(10))
  }

  private func listening(
    _ context: CommandContext, _ access: ClientOptions.Access
  ) throws -> BackendConfiguration.HubAccess? {
    guard
      let text = words.value("--listen-connection")
        ?? context.environment["BELFRY_LISTEN_CONNECTION_STRING"]
    else { return nil }
    let connection: ConnectionString
    do { connection = try ConnectionString(text) } catch {
      throw words.fault("--listen-connection: \(error)")
    }
    // Devices would get every right that the backend has.
    guard connection.key != access.connection.key else {
      throw words.fault(
        "--listen-connection must be of a policy with the right Listen alone, not the backend's own"
      )
    }
    return BackendConfiguration.HubAccess(connectionString: connection, hub: access.hub)
  }

  /// Asks the hub for what would otherwise fail with each request, or give devices too much. One that
  /// does not answer may still be starting.
  private func check(
    _ access: ClientOptions.Access, _ listening: BackendConfiguration.HubAccess?,
    _ context: CommandContext
  ) async throws {
    let hub = "the hub '\(access.hub)' at \(access.connection.endpoint.url)"
    func refusal(_ reason: String) -> CommandFailure { CommandFailure(reason, exitCode: .usage) }
    func client(_ connection: ConnectionString) -> NotificationHubClient {
      NotificationHubClient(
        connectionString: connection, hub: access.hub, transport: access.transport, retry: .none)
    }
    do {
      let manager = client(access.connection)
      guard try await Self.isAllowed({ try await Self.listAll(manager) }) else {
        throw refusal(
          "\(hub) is not there, or does not take the connection string: it must be of a policy of "
            + "that hub with the right Manage")
      }
      guard let listening else { return }
      let device = client(listening.connectionString)
      let listens = try await Self.isAllowed {
        _ = try await device.registrations(channel: .handle("00")).first { _ in true }
      }
      guard listens else {
        throw refusal(
          "--listen-connection: \(hub) does not take it; it must be of a policy of that hub with the "
            + "right Listen")
      }
      let manages = try await Self.isAllowed { try await Self.listAll(device) }
      let sends = try await Self.isAllowed {
        do {
          _ = try await device.telemetry(of: "belfry-backend-check")
        } catch let error as NotificationHubError where error.kind == .notFound {}
      }
      guard !manages, !sends else {
        throw refusal(
          "--listen-connection: the policy \(listening.connectionString.keyName) has more than Listen, "
            + "and each device would get that. Make one: belfry policy create devices --rights Listen"
        )
      }
    } catch let error as NotificationHubError where error.kind == .notFound {
      throw CommandFailure(
        "\(hub) is not there. Name another with --hub, or make it: belfry hub create \(access.hub)",
        exitCode: .refused)
    } catch let error as NotificationHubError {
      context.note("warning: the hub could not be asked whether it is there: \(error)")
    }
  }

  private static func listAll(_ client: NotificationHubClient) async throws {
    _ = try await client.registrations(pageSize: 1).first { _ in true }
  }

  /// - Returns: Whether the hub lets the caller do that.
  private static func isAllowed(_ call: () async throws -> Void) async throws -> Bool {
    do {
      try await call()
      return true
    } catch let error as NotificationHubError where error.kind == .unauthorized {
      return false
    }
  }

  private func trustedProxies(_ context: CommandContext) throws -> TrustedProxies {
    let text =
      words.value("--trusted-proxies") ?? context.environment[Setting.trustedProxies.variable] ?? ""
    do {
      return try TrustedProxies(
        text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) })
    } catch {
      throw words.fault("--trusted-proxies: \(error.description)")
    }
  }

  private func signIn(_ context: CommandContext) throws -> SignIn {
    var signIn = SignIn()
    if words.flag("--demo-auth") {
      context.note(
        "warning: with --demo-auth everybody is who they claim to be and may send to all; for "
          + "demonstrations only")
      signIn.passwords = DemoUsers()
      signIn.everyoneSends = true
    } else {
      let path = BackendOptions.userFile(words)
      if words.value("--users") != nil || FileManager.default.fileExists(atPath: path) {
        signIn.passwords = try users(path)
      }
    }
    signIn.bearer = try bearer()
    guard signIn.passwords != nil || signIn.bearer != nil else {
      throw words.fault(
        "nobody could sign in: make users with `belfry backend user add NAME`, or give --issuer, "
          + "--audience and --jwks, or --demo-auth")
    }
    for name in words.all("--operator") {
      do {
        signIn.operators.insert(try UserName(reference: name, kinds: signIn.kinds))
      } catch {
        throw words.fault("--operator: \(error.description)")
      }
    }
    return signIn
  }

  private func users(_ path: String) throws -> UserFile {
    do { return try UserFile(path: path) } catch {
      throw CommandFailure("\(error)", exitCode: .usage)
    }
  }

  private func bearer() throws -> BearerConfiguration? {
    let given = ["--issuer", "--audience", "--jwks"].filter { words.value($0) != nil }
    guard !given.isEmpty else { return nil }
    guard let issuer = words.value("--issuer"), let audience = words.value("--audience"),
      let keys = words.value("--jwks")
    else { throw words.fault("--issuer, --audience and --jwks belong together") }
    var bearer = BearerConfiguration(
      issuer: issuer, audience: audience, keys: try source(of: keys))
    bearer.userClaim = words.value("--user-claim") ?? bearer.userClaim
    bearer.clockSkew = clockSkew.map(Double.init) ?? bearer.clockSkew
    return bearer
  }

  private func source(of keys: String) throws -> IssuerKeySource {
    guard keys.contains("://") else {
      guard FileManager.default.isReadableFile(atPath: keys) else {
        throw words.fault("--jwks: \(keys) cannot be read")
      }
      return .file(keys)
    }
    guard let url = URL(string: keys), let host = url.host(),
      url.scheme == "https" || ["localhost", "127.0.0.1", "::1"].contains(host)
    else { throw words.fault("--jwks: '\(keys)' must be an https URL or a file") }
    return .url(url)
  }
}
