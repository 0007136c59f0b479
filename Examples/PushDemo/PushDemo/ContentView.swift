import PushDevice
import SwiftUI

/// The app's one screen: the registration, the account, and the messages.
struct ContentView: View {
  let demo: Demo
  let events: PushEvents
  @State private var messages: [String] = []
  @State private var notice = ""

  var body: some View {
    NavigationStack {
      Form {
        if let push = demo.push {
          RegistrationSection(push: push, notice: $notice)
          if demo.account != nil { AccountSection(demo: demo, notice: $notice) }
        }
        if let problem = demo.problem { Section("Settings") { Text(problem) } }
        Section("Messages") {
          // Two messages may have the same text.
          ForEach(messages.indices, id: \.self) { Text(messages[$0]) }
        }
        if !notice.isEmpty { Section("Last action") { Text(notice) } }
      }
      .navigationTitle("PushDemo")
    }
    .onPushEvent(of: events) { event in
      guard case .opened(let message) = event else { return }
      Task { if let text = await demo.text(of: message) { messages.append(text) } }
    }
  }
}

/// The state of the registration, as the SDK tells it.
private struct RegistrationSection: View {
  let push: PushInstallation
  @Binding var notice: String
  @State private var state = PushInstallation.State.waitingForToken(problem: nil)

  var body: some View {
    Section("Registration") {
      LabeledContent("State", value: state.description)
      Button("Allow notifications") {
        Task {
          do { notice = "\(try await push.requestPermission())" } catch { notice = "\(error)" }
        }
      }
      Button("Register now") {
        Task {
          do { notice = "saved as \(try await push.synchronize().fingerprint)" } catch {
            notice = "\(error)"
          }
        }
      }
    }
    .onPushState(of: push) { state = $0 }
  }
}

/// The tutorial's screen: user name, password, "Log in" and "Send push".
private struct AccountSection: View {
  let demo: Demo
  @Binding var notice: String
  @State private var user = ""
  @State private var password = ""

  var body: some View {
    Section("Account") {
      TextField("User name", text: $user)
        .textInputAutocapitalization(.never)
        .autocorrectionDisabled()
      SecureField("Password", text: $password)
      action("Log in") { try await demo.signIn(user: user, password: password) }
      action("Send push") { try await demo.account?.send() }
      action("Log out") { try await demo.signOut() }
    }
  }

  private func action(
    _ title: String, _ work: @escaping @MainActor () async throws -> Void
  ) -> some View {
    Button(title) {
      Task {
        do {
          try await work()
          notice = "\(title): done"
        } catch {
          notice = "\(title): \(error)"
        }
      }
    }
  }
}
