import Foundation
import NotificationHubs

/// `belfry registration put`
struct RegistrationPutCommand: Subcommand {
  static let help = CommandHelp(
    "registration put", "create or replace a registration",
    arguments: [
      ("[FILE]", "the registration as XML: a file, - for standard input, or the text")
    ],
    options: ClientOptions.options + [
      .value("--id", "ID", "the registration's id (default: the XML's, or a new one)"),
      .value("--etag", "N", "only while the registration still has this etag; * for any"),
      .value(
        "--platform", "WORD", "apns, fcmv1, wns … (default apns)",
        words: PushPlatform.allCases.map(\.rawValue)),
      .value(
        "--handle", "TEXT",
        "what the push service calls the device; Baidu: USER-CHANNEL, browser: the subscription "
          + "as JSON"),
      .value("--tags", "A,B", "tags, separated by commas"),
      .value("--variable", "NAME=VALUE", "a value for templates", repeats: true),
      .value("--body", "TEXT", "makes it a template registration; without it, it is a native one"),
      .value("--name", "NAME", "the template's name"),
      .value(
        "--header", "NAME=VALUE", "a header of the template, such as X-WNS-Type=wns/toast",
        repeats: true),
      .value("--expiry", "DATE", "Apple templates: a date, 0 or an expression"),
      .value("--priority", "N", "Apple templates: 0 to 255, or an expression"),
    ],
    discussion: """
      A registration is one target: native, or one template. Apps of today write installations
      instead, which are both (`belfry installation put`).

      \(ClientOptions.note)
      """,
    examples: [
      "belfry registration put --handle 62BC… --tags news",
      "belfry registration put --handle 62BC… --body '{\"aps\":{\"alert\":\"$(message)\"}}' \\",
      "    --name main --priority 10",
      "belfry registration put --id 123-234-1 --etag 2 phone.xml",
    ])

  let client: ClientOptions
  let words: Words

  init(_ words: Words) throws {
    client = ClientOptions(words: words)
    self.words = words
    if words.arguments.isEmpty && words.value("--handle") == nil {
      throw words.fault("give the registration as XML, or --handle and what else it has")
    }
  }

  func run(in context: CommandContext) async throws {
    let registration = try registration()
    let access = try await client.access(.changes("Listen"), in: context)
    let stored = try await access.calling {
      if words.value("--etag") != nil { return try await access.client.update(registration) }
      return registration.registrationID == nil
        ? try await access.client.create(registration)
        : try await access.client.createOrUpdate(registration)
    }
    if client.json {
      try context.printJSON(ShownRegistration(stored).members)
    } else {
      context.print(
        "registration \(stored.registrationID ?? "") is in hub \(access.hub), etag "
          + (stored.etag ?? ""))
    }
  }

  private func registration() throws -> Registration {
    do {
      var registration: Registration
      if let word = words.arguments.first {
        registration = try Registration.decode(try TextInput.read(word))
      } else {
        registration = try described()
      }
      if let id = words.value("--id") { registration.registrationID = id }
      if let etag = words.value("--etag") {
        guard registration.registrationID != nil else {
          throw words.fault("--etag wants --id: the registration to replace")
        }
        registration.etag = etag == "*" ? nil : etag
      }
      return try registration.validated()
    } catch let error as WireFormatError {
      throw CommandFailure("\(error)", exitCode: .usage)
    }
  }

  /// What the options say.
  private func described() throws -> Registration {
    let word = words.value("--platform") ?? "apns"
    guard let platform = PushPlatform(installationWord: word) else {
      throw words.fault("'\(word)' is no platform")
    }
    var registration = Registration(
      platform: platform,
      channel: try TextInput.channel(
        words.value("--handle") ?? "", of: "--handle", platform, in: words),
      tags: TextInput.list(words.value("--tags")).map { Tag(rawValue: $0) })
    for text in words.all("--variable") {
      let (name, value) = try TextInput.pair(text, of: "--variable", in: words)
      registration.pushVariables[name] = value
    }
    guard let body = words.value("--body") else {
      for option in ["--name", "--header", "--expiry", "--priority"]
      where !words.all(option).isEmpty {
        throw words.fault("\(option) belongs to a template: give its --body")
      }
      return registration
    }
    var template = PushTemplate(body: body, expiry: words.value("--expiry"))
    for text in words.all("--header") {
      let (name, value) = try TextInput.pair(text, of: "--header", in: words)
      template.headers[name] = value
    }
    if let priority = words.value("--priority") { template.applePriority = priority }
    registration.kind = .template(template, name: words.value("--name"))
    return registration
  }
}

/// `belfry registration get`
struct RegistrationGetCommand: Subcommand {
  static let help = CommandHelp(
    "registration get", "read a registration", arguments: [("ID", "the registration's id")],
    options: ClientOptions.options, discussion: ClientOptions.note,
    examples: ["belfry registration get 123-234-1 --data belfry-data"])

  let id: String
  let client: ClientOptions

  init(_ words: Words) throws {
    id = try words.argument(0)
    client = ClientOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(.looks("Listen"), in: context)
    let shown = ShownRegistration(
      try await access.calling { try await access.client.registration(id) })
    if client.json {
      try context.printJSON(shown.members)
    } else {
      for line in shown.lines { context.print(line) }
    }
  }
}

/// `belfry registration delete`
struct RegistrationDeleteCommand: Subcommand {
  static let help = CommandHelp(
    "registration delete", "delete a registration",
    arguments: [("ID", "the registration's id")],
    options: ClientOptions.options + [
      .value("--etag", "N", "only while the registration still has this etag")
    ],
    discussion: """
      One that an installation has made comes back with the installation's next write; delete the
      installation to be rid of it.

      \(ClientOptions.note)
      """,
    examples: ["belfry registration delete 123-234-1"])

  let id: String
  let etag: String?
  let client: ClientOptions

  init(_ words: Words) throws {
    id = try words.argument(0)
    etag = words.value("--etag")
    client = ClientOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(.changes("Listen"), in: context)
    try await access.calling { try await access.client.delete(registration: id, etag: etag) }
    if client.json {
      try context.printJSON(["deleted": id])
    } else {
      context.print("registration \(id) is gone")
    }
  }
}
