#!/bin/sh
# Client registration of Spring Security 7.1.2 (Spring Boot 4.1.2) answers 201 to a client with `private_key_jwt` and its
# `jwks_uri`, but registers it with `client_secret_basic` and a secret that was not asked for, though its own metadata list
# `private_key_jwt`. RFC 7591 3.2.1 lets a server replace values, so a client has to compare the answer with what it sent;
# one that does not is invalid_client at each request. `response_types: []`, which is what client credentials have, is
# refused. It concerns each client and agent that registers itself with a key. Fails if the behaviour changes.
set -eu && folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" && mkdir -p src/main/java/f
cat > pom.xml <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<parent><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-parent</artifactId><version>4.1.2</version></parent>
<groupId>f</groupId><artifactId>f</artifactId><version>1</version><dependencies>
<dependency><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-security-oauth2-authorization-server</artifactId></dependency></dependencies><build>
<plugins><plugin><groupId>org.springframework.boot</groupId><artifactId>spring-boot-maven-plugin</artifactId></plugin></plugins></build></project>
POM
cat > src/main/java/f/F.java <<'JAVA'
package f;
import java.net.URI;
import java.net.http.*;
import org.springframework.boot.SpringApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.oauth2.core.*;
import org.springframework.security.oauth2.server.authorization.client.*;
@org.springframework.boot.autoconfigure.SpringBootApplication
public class F {
  @Bean org.springframework.security.web.SecurityFilterChain chain(HttpSecurity http) throws Exception {
    return http.oauth2AuthorizationServer(it -> it.clientRegistrationEndpoint(to -> to.openRegistrationAllowed(true)))
        .authorizeHttpRequests(all -> all.anyRequest().permitAll()).build();
  }
  @Bean RegisteredClientRepository clients() {
    return new InMemoryRegisteredClientRepository(RegisteredClient.withId("x").clientId("x").clientSecret("{noop}x")
        .clientAuthenticationMethod(ClientAuthenticationMethod.CLIENT_SECRET_BASIC)
        .authorizationGrantType(AuthorizationGrantType.CLIENT_CREDENTIALS).build());
  }
  static HttpResponse<String> send(HttpRequest.Builder request) throws Exception {
    var answer = HttpClient.newHttpClient().send(request.build(), HttpResponse.BodyHandlers.ofString());
    System.out.println(answer.statusCode() + " " + answer.body().replaceAll("(client_secret\":\")[^\"]+", "$1..."));
    return answer;
  }
  public static void main(String[] words) throws Exception {
    var app = SpringApplication.run(F.class, "--server.port=0", "--logging.level.root=warn", "--spring.main.banner-mode=off");
    System.out.println("Spring Security " + org.springframework.security.core.SpringSecurityCoreVersion.getVersion());
    var at = "http://localhost:" + app.getEnvironment().getProperty("local.server.port");
    var metadata = send(HttpRequest.newBuilder(URI.create(at + "/.well-known/oauth-authorization-server"))).body();
    var to = HttpRequest.newBuilder(URI.create(at + "/oauth2/register")).header("content-type", "application/json");
    var asked = "{\"client_name\":\"c\",\"grant_types\":[\"client_credentials\"],\"token_endpoint_auth_method\":\"private_key_jwt\","
        + "\"token_endpoint_auth_signing_alg\":\"ES256\",";
    var keys = send(to.POST(HttpRequest.BodyPublishers.ofString(asked + "\"jwks_uri\":\"https://c.example/jwks\"}")));
    var none = send(to.POST(HttpRequest.BodyPublishers.ofString(asked + "\"response_types\":[]}")));
    var replaced = keys.body().contains("\"token_endpoint_auth_method\":\"client_secret_basic\"");
    var secret = keys.body().contains("\"client_secret\":") && keys.body().contains("\"jwks_uri\":\"https://c.example/jwks\"");
    var refused = none.statusCode() == 400 && none.body().contains("response_types cannot be empty");
    System.exit(metadata.contains("private_key_jwt") && replaced && secret && refused ? 0 : 1);
  }
}
JAVA
mvn -q -B -Dmaven.repo.local="$folder/m2" package > mvn.log 2>&1 || { cat mvn.log; exit 1; }
java -jar target/f-1.jar
